package sim_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// most is within how many schedules a mistake has to be noticed.
const most = 5000

// Building a mutant takes longer than finding its mistake. So without time only one oracle in four has to find a
// mutant.
func TestEveryMistakeIsNoticed(t *testing.T) {
	tried := make(map[string]bool)
	for _, c := range sim.Controls() {
		if by := strings.Join(c.Oracles, " "); c.Broken.Mutant != "" {
			try := soak.On() || !tried[by] && soak.Share(len(tried), 4)
			tried[by] = true
			if !try {
				continue
			}
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			b := &sim.Batch{
				Profile: c.Profile, First: c.First, N: most, Broken: c.Broken, Oracles: c.Oracles, StopAfter: 1,
			}
			var done int
			if c.Broken.Mutant == "" {
				done = notice(t, b)
			} else {
				done = noticedElsewhere(t, c)
			}
			// The unchanged engine survives the same schedules.
			whole := *b
			whole.Broken, whole.N = sim.BrokenVariants{}, min(max(done, 200), harmless)
			complain(t, &whole, whole.Run(t.Context()))
		})
	}
}

// noticedElsewhere has the command find a control's mistake, which it does in a build with its mutant, and returns
// after how many schedules it did.
func noticedElsewhere(t *testing.T, c sim.Control) (schedules int) {
	t.Helper()
	first := strconv.FormatUint(c.First, 10)
	r, status, stdout, _ := written(t, "-broken", c.Name, "-seed", first, "-schedules", strconv.Itoa(most), "-whole")
	if status != 1 || r.Seed == nil || len(r.Found) == 0 {
		t.Fatalf("not noticed, status %d:\n%s", status, stdout)
	}
	for _, v := range r.Found {
		if len(c.Oracles) > 0 && !slices.Contains(c.Oracles, v.Oracle) {
			t.Errorf("%v is not what %v look for", v, c.Oracles)
		}
	}
	t.Logf("noticed after %d schedules, seed %d: %v", r.Schedules, *r.Seed, r.Found[0])
	return r.Schedules
}

// notice has a batch find the mistake it makes, and returns after how many schedules.
func notice(t *testing.T, b *sim.Batch) (schedules int) {
	t.Helper()
	out := b.Run(t.Context())
	if len(out.Failures) == 0 || out.Failures[0].Err != nil {
		t.Fatalf("not noticed in %d schedules: %+v", out.Done, out.Failures)
	}
	f := out.Failures[0]
	t.Logf("noticed after %d schedules, seed %d: %v", out.Done, f.Seed, f.Violations[0])
	return out.Done
}

// sessions is how many sessions the tasks of a schedule have.
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
