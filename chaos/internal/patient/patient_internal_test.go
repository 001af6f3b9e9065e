package patient

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

func TestAPassThatShowsTooLittleIsRepeatedOnlyIfTheMachineWasBusy(t *testing.T) {
	few := func(rep *chaos.Report) bool { return rep.Acquisitions >= 5 }
	for name, tt := range map[string]struct {
		rep    chaos.Report
		enough []func(*chaos.Report) bool
		want   bool
	}{
		"too little, no time": {
			chaos.Report{Starved: true, Verdict: report.Pass, Acquisitions: 2}, []func(*chaos.Report) bool{few}, true,
		},
		"too little, all time": {
			chaos.Report{Verdict: report.Pass, Acquisitions: 2}, []func(*chaos.Report) bool{few}, false,
		},
		"enough": {
			chaos.Report{Starved: true, Verdict: report.Pass, Acquisitions: 5}, []func(*chaos.Report) bool{few}, false,
		},
		"convicted, and too few": {
			chaos.Report{Starved: true, Verdict: report.Violation, Acquisitions: 2},
			[]func(*chaos.Report) bool{few},
			false,
		},
		"nobody asks for a count": {chaos.Report{Starved: true, Verdict: report.Pass}, nil, false},
	} {
		if got := hurried(&tt.rep, tt.enough); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestABrokenLockMayTakeSeveralRunsToCatch has runs that are only counted: each has the next seed, whether that is the
// run's or its plan's.
func TestABrokenLockMayTakeSeveralRunsToCatch(t *testing.T) {
	planned := &plan.Plan{Scenario: "calm", Seed: 1}
	for name, cfg := range map[string]chaos.Config{"scenario": {Scenario: "calm", Seed: 1}, "plan": {Plan: planned}} {
		for _, tt := range []struct{ catches, runs uint64 }{{1, 1}, {3, 3}, {0, most}} {
			var runs uint64
			counted := func(cfg chaos.Config) *chaos.Report {
				seed := cfg.Seed
				if cfg.Plan != nil {
					seed = cfg.Plan.Seed
				}
				if runs++; seed != runs {
					t.Errorf("%s: run %d has seed %d", name, runs, seed)
				}
				return &chaos.Report{Seed: seed}
			}
			rep, caught := search(t, cfg, func(*chaos.Report) bool { return runs == tt.catches }, counted)
			if caught != (tt.catches > 0) || runs != tt.runs || rep.Seed != tt.runs || planned.Seed != 1 {
				t.Errorf("%s: caught in run %d: there were %d, the report is of %d, and the caller's plan has the "+
					"seed %d", name, tt.catches, runs, rep.Seed, planned.Seed)
			}
		}
	}
}
