package verdict_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/verdict"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// BenchmarkCheck judges histories of one key that many holders take in turn. The time for one hold
// has to be about the same in each history. An oracle that compared every hold with every other
// once took more than an hour for the handoffs of fifteen seconds.
func BenchmarkCheck(b *testing.B) {
	for _, holds := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(holds), func(b *testing.B) {
			events := handoffs(holds)
			for b.Loop() {
				switch j, err := verdict.Check(events, oracle.Limits{}, true); {
				case err != nil:
					b.Fatal(err)
				case j.Acquisitions != holds || len(j.Violations) > 0:
					b.Fatalf("%d acquisitions, violations %v; want %d and none", j.Acquisitions, j.Violations, holds)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*holds), "ns/hold")
		})
	}
}

// handoffs is a history of n holds of one key, one after the other. Ten other attempts wait for each hold.
func handoffs(n int) []history.Event {
	const cycle, clients = int64(20 * time.Microsecond), 10
	var events []history.Event
	for i := range n {
		from := int64(clients+i) * cycle
		e := history.Event{
			Attempt: uint64(i + 1), Client: i % clients, Key: "k", TTL: int64(time.Second), Owner: fmt.Sprint(i),
		}
		add := func(at int64, what history.Type, outcome history.Outcome) {
			e.At, e.Type, e.Outcome = at, what, outcome
			events = append(events, e)
		}
		add(from-clients*cycle, history.AcquireCall, history.Pending)
		e.Until = from + int64(time.Second)
		add(from, history.AcquireReturn, history.Acquired)
		add(from+cycle/2, history.ReleaseCall, history.Pending)
		add(from+cycle-1, history.ReleaseReturn, history.Pending)
	}
	return events
}
