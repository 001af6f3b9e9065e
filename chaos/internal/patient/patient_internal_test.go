package patient

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

func TestOnlyARunThatShowedNothingIsRepeated(t *testing.T) {
	found := []oracle.Violation{{Oracle: oracle.NameValidity, Unknown: true}}
	unjudged := []oracle.Violation{{Oracle: oracle.NameAvailability, Unknown: true}}
	for name, tt := range map[string]struct {
		rep  chaos.Report
		want bool
	}{
		"no time at all":               {chaos.Report{Starved: true, Verdict: report.Unknown}, true},
		"no verdict for other reasons": {chaos.Report{Verdict: report.Unknown}, false},
		"it passed":                    {chaos.Report{Starved: true, Verdict: report.Pass}, false},
		"it was convicted":             {chaos.Report{Starved: true, Verdict: report.Violation}, false},
		"too few attempts were judged": {
			chaos.Report{Starved: true, Verdict: report.Unknown, Violations: unjudged}, true,
		},
		"something was found": {chaos.Report{Starved: true, Verdict: report.Unknown, Violations: found}, false},
	} {
		if got := starved(&tt.rep); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for judged, want := range map[int]bool{9: true, 10: false} {
		slow := chaos.Report{Verdict: report.Unknown}
		slow.Service.Attempts, slow.Service.Total = judged, 100
		if starved(&slow) != want {
			t.Errorf("a run that judged %d of 100 attempts is repeated: %v", judged, !want)
		}
	}
}

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
			rep := search(t, cfg, func(*chaos.Report) bool { return runs == tt.catches }, counted)
			if runs != tt.runs || rep.Seed != tt.runs || planned.Seed != 1 {
				t.Errorf("%s: caught in run %d: there were %d, the report is of %d, and the caller's plan has the "+
					"seed %d", name, tt.catches, runs, rep.Seed, planned.Seed)
			}
		}
	}
}
