package sim_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
)

// most is within how many schedules a mistake has to be noticed.
const most = 5000

func TestEveryMistakeIsNoticed(t *testing.T) {
	for _, c := range sim.Controls() {
		t.Run(c.Name, func(t *testing.T) {
			first := uint64(1)
			if c.Name == "no-drift" {
				first = 30_001 // it shows in one schedule of some 3,000; beginning here it does not take long
			}
			b := &sim.Batch{Profile: c.Profile, First: first, N: most, Broken: c.Broken, Oracles: c.Oracles, StopAfter: 1}
			out := b.Run(t.Context())
			if len(out.Failures) == 0 || out.Failures[0].Err != nil {
				t.Fatalf("not noticed in %d schedules: %+v", out.Done, out.Failures)
			}
			f := out.Failures[0]
			t.Logf("seed %d, after %d schedules: %v", f.Seed, out.Done, f.Violations[0])

			// The same schedules are harmless to the engine as it is.
			whole := *b
			whole.Broken, whole.N = sim.BrokenVariants{}, max(out.Done, 200)
			complain(t, &whole, whole.Run(t.Context()))
		})
	}
}

func TestAFailureShrinksAndIsDrawn(t *testing.T) {
	c := sim.Controls()[0]
	b := &sim.Batch{Profile: c.Profile, First: 1, N: most, Broken: c.Broken, Oracles: c.Oracles, StopAfter: 1}
	f := b.Run(t.Context()).Failures[0]
	s := b.Schedule(f.Seed)
	small := sim.Shrink(t.Context(), s, c.Oracles)
	if sessions(small) > sessions(s) || sessions(small) > 4 || len(small.Faults) > 1 {
		t.Errorf("shrunk to %d sessions and %d faults, from %d and %d", sessions(small), len(small.Faults), sessions(s), len(s.Faults))
	}
	r, err := sim.RunTraced(small)
	if err != nil {
		t.Fatal(err)
	}
	var drawn bytes.Buffer
	if err := sim.Timeline(&drawn, small, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HOLDS it as o1", "VIOLATION overlap"} {
		if !strings.Contains(drawn.String(), want) {
			t.Errorf("the timeline does not say %q:\n%s", want, drawn.String())
		}
	}
}

func sessions(s *sim.Schedule) int {
	n := 0
	for _, c := range s.Clients {
		for _, task := range c.Tasks {
			n += len(task)
		}
	}
	return n
}

func TestOutsideTheAssumptionsViolationsAreFound(t *testing.T) {
	for _, p := range sim.Profiles() {
		if p.Promised {
			continue
		}
		b := &sim.Batch{Profile: p, First: 1, N: most, StopAfter: 1}
		out := b.Run(context.WithoutCancel(t.Context()))
		if len(out.Failures) == 0 {
			t.Errorf("%s: nothing in %d schedules", p.Name, out.Done)
			continue
		}
		f := out.Failures[0]
		if f.Err != nil {
			t.Errorf("%s, seed %d: %v", p.Name, f.Seed, f.Err)
			continue
		}
		t.Logf("%s, seed %d: %v", p.Name, f.Seed, f.Violations[0])
	}
}
