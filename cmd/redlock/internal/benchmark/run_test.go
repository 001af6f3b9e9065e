package benchmark_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// short is a run that a test has time for.
func short() benchmark.Config {
	return benchmark.Config{
		Rounds: 2, Window: 50 * time.Millisecond, Workers: 2, Contenders: 2, Ops: 1000, TTL: 5 * time.Second,
	}
}

// targetOf opens masters as the command does. Run closes the Lockers.
func targetOf(t *testing.T, servers []*redistest.Server, contenders int) benchmark.Target {
	t.Helper()
	target := benchmark.Target{Say: error.Error, Quorum: func(usable func(i int) bool) error {
		n := 0
		for i := range servers {
			if usable(i) {
				n++
			}
		}
		if n < redlock.Quorum(len(servers)) {
			return fmt.Errorf("only %d", n)
		}
		return nil
	}}
	for i := range contenders + 1 {
		var masters []redlock.Master
		for _, s := range servers {
			m, err := single.Dial(s.URL(), single.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			masters = append(masters, m)
			if i == 0 {
				target.Masters = append(target.Masters, m)
			}
		}
		l, err := redlock.New(masters, redlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			target.Locker = l
		} else {
			target.Contenders = append(target.Contenders, l)
		}
	}
	return target
}

// keyspace returns everything on a server, by key: the value in the form of DUMP.
func keyspace(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, key := range s.Client().Keys(t.Context(), "*").Val() {
		all[key] = s.Client().Dump(t.Context(), key).Val() // "" if the key is gone by now
	}
	return all
}

// populated starts masters that hold the keys of other users.
func populated(t *testing.T, n int) (servers []*redistest.Server, before []map[string]string) {
	t.Helper()
	servers = redistest.StartN(t, n)
	for i, s := range servers {
		for _, err := range []error{
			s.Client().Set(t.Context(), "orders:1", fmt.Sprint("of ", i), 0).Err(),
			s.Client().HSet(t.Context(), "redlock-bench:somebody", "field", "value").Err(),
			s.Client().ZAdd(t.Context(), single.CounterKey("orders:1"), redis.Z{Score: 7, Member: "redlock:token"}).
				Err(),
			s.Client().Set(t.Context(), "held", "somebody", time.Hour).Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		before = append(before, keyspace(t, s))
		if len(before[i]) != 4 {
			t.Fatalf("master %d has %v", i, before[i])
		}
	}
	return servers, before
}

func TestEverythingIsMeasuredAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	servers, before := populated(t, 3)
	for name, change := range map[string]func(*benchmark.Config){
		"closed": func(*benchmark.Config) {}, "fenced": func(c *benchmark.Config) { c.Fenced = true },
		"open": func(c *benchmark.Config) { c.Rate = 300 },
	} {
		t.Run(name, func(t *testing.T) {
			c := short()
			change(&c)
			r, err := benchmark.Run(t.Context(), c, targetOf(t, servers, c.Contenders), nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Measures {
				m := &r.Measures[i]
				if m.N == 0 && (m.Name != "handoff" || c.Rate == 0) || m.Failed+m.Unfinished > 0 {
					t.Errorf("%s: %d operations, %s failed: %s", m.Name, m.N, m.ShowTrouble(), m.Error)
				}
				if len(m.Rounds) != c.Rounds {
					t.Errorf("%s: %d rounds of %d", m.Name, len(m.Rounds), c.Rounds)
				}
				if m.N >= 2 && (m.P50 == nil || *m.P50 <= 0 || *m.P50 > m.Max) {
					t.Errorf("%s: p50 %v, max %v", m.Name, m.ShowQuantile("p50"), m.Max)
				}
			}
			if r.Keys.Left != 0 || r.Keys.Unknown != nil || r.Overlaps != 0 || r.Interrupted {
				t.Errorf("%+v", r)
			}
			for i, s := range servers {
				if after := keyspace(t, s); !maps.Equal(after, before[i]) {
					t.Errorf("master %d has %q, and had %q", i, slices.Sorted(maps.Keys(after)),
						slices.Sorted(maps.Keys(before[i])))
				}
			}
		})
	}
}

// A master stops answering during the measurement. The operations in progress are cut off and count, and the report
// says that the run ended early.
func TestAQuorumThatIsLostEndsTheRun(t *testing.T) {
	t.Parallel()
	server := redistest.StartN(t, 1)
	c := short()
	c.Rounds, c.Window, c.Unlimited = 100, 200*time.Millisecond, true
	paused := false
	r, err := benchmark.Run(t.Context(), c, targetOf(t, server, c.Contenders), func(p benchmark.Progress) {
		if p.Round > 1 && !paused {
			paused = true
			if err := server[0].Pause(); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, benchmark.ErrNoQuorum) || r == nil || len(r.Keys.Unknown) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	cut := 0
	for _, m := range r.Measures {
		cut += m.Unfinished + m.Failed
	}
	if cut == 0 {
		t.Errorf("nothing was cut off or failed: %+v", r.Measures)
	}
}
