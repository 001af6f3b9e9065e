package plan_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/plan"
)

// TestDrawnPlansHaveNoConflicts draws 2,000 seeds of every scenario that has faults at the same time, and some of the
// others.
func TestDrawnPlansHaveNoConflicts(t *testing.T) {
	for _, s := range plan.Scenarios() {
		seeds := uint64(50)
		if s.Name == "everything" {
			seeds = 2000
		}
		for _, length := range []time.Duration{20 * time.Second, time.Minute} {
			steps := 0
			for seed := range seeds {
				p := draw(t, s, seed, plan.Size{Duration: length})
				steps += len(p.Steps)
				if c := p.Conflicts(); len(c) > 0 {
					t.Fatalf("%s, %v, seed %d: %v", s.Name, length, seed, c[0])
				}
			}
			if s.Name == "everything" && steps < int(seeds)*10 {
				t.Errorf("%d plans of %v have %d steps: too few for two at a time", seeds, length, steps)
			}
		}
	}
}

func TestConflictsAreFound(t *testing.T) {
	const sec = plan.Duration(time.Second)
	for name, tt := range map[string]struct {
		a, b plan.Step
		want int
	}{
		"on a killed master": {
			plan.Step{At: sec, For: sec, Fault: "kill", Masters: []int{1}}, plan.Step{
				At: sec, For: sec, Fault: "full", Masters: []int{0, 1},
			}, 1,
		},
		"on another": {
			plan.Step{At: sec, For: sec, Fault: "kill", Masters: []int{1}}, plan.Step{
				At: sec, For: sec, Fault: "full", Masters: []int{0, 2},
			}, 0,
		},
		"on all": {
			plan.Step{At: sec, For: sec, Fault: "kill", Masters: []int{1}}, plan.Step{
				At: 2 * sec, Fault: "script-flush",
			}, 1,
		},
		"just after": {
			plan.Step{At: sec, For: sec, Fault: "kill", Masters: []int{1}}, plan.Step{
				At: 2*sec + sec/4, For: sec, Fault: "busy", Masters: []int{1},
			}, 1,
		},
		"later": {
			plan.Step{At: sec, For: sec, Fault: "kill", Masters: []int{1}}, plan.Step{
				At: 3 * sec, For: sec, Fault: "busy", Masters: []int{1},
			}, 0,
		},
		"of the network": {
			plan.Step{At: sec, For: sec, Fault: "silence"}, plan.Step{At: sec, For: sec, Fault: "down"}, 0,
		},
		"a network and a master": {
			plan.Step{At: sec, For: sec, Fault: "silence"}, plan.Step{At: sec, For: sec, Fault: "kill"}, 0,
		},
		"the same client, paused": {
			plan.Step{At: sec, For: sec, Fault: "client-pause", Clients: []int{2}}, plan.Step{
				At: sec, For: sec, Fault: "client-pause",
			}, 1,
		},
	} {
		p := plan.Plan{Masters: 5, Clients: 5, Steps: []plan.Step{tt.a, tt.b}}
		if got := p.Conflicts(); len(got) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		p.Steps[0], p.Steps[1] = p.Steps[1], p.Steps[0]
		if got := p.Conflicts(); len(got) != tt.want {
			t.Errorf("%s, the other way round: %v", name, got)
		}
	}
}
