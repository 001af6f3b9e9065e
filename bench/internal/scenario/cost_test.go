package scenario_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// The test sends the commands of a plain cycle, its SET and its release, and reads their cost from Redis. The scenario
// must report the same for each master.
func TestCostMatchesTheMastersStatistics(t *testing.T) {
	rival, err := subject.Find([]string{"redsync"})
	must(t, err)
	const slack = 0.9 // for costs that a few cycles share: connections, and commands in progress at the first reading
	env, _ := onServers(t, 3, append(rival, subject.Redlock())...)
	env.Masters, env.Workers = 3, []int{1}
	rows := measured(t, env, "cost")
	if len(rows) != 2 {
		t.Fatalf("rows: %+v", rows)
	}
	// SET; EVALSHA, GET, DEL; and EXISTS of the queue. This library does not wait for the last master. If that master
	// is behind, it gets the releases of several cycles as one.
	want := map[string][2]float64{"redsync": {4, 4}, "redlock": {1, 5}}
	for _, r := range rows {
		if got, _ := r.Get("commands"); got < want[r.Subject][0]-slack || got > want[r.Subject][1]+slack {
			t.Errorf("%s: %.2f commands a cycle, want %v", r.Subject, got, want[r.Subject])
		}
		for _, name := range []string{"bytes_in", "bytes_out", "client_cpu_us"} {
			if v, there := r.Get(name); !there || v <= 0 {
				t.Errorf("%s: %s is %v (%t)", r.Subject, name, v, there)
			}
		}
	}
}
