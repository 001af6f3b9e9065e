package patient

import (
	"testing"
	"time"

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
		"too few attempts were judged": {chaos.Report{Starved: true, Verdict: report.Unknown, Violations: unjudged}, true},
		"something was found":          {chaos.Report{Starved: true, Verdict: report.Unknown, Violations: found}, false},
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
		"too little, no time":     {chaos.Report{Starved: true, Verdict: report.Pass, Acquisitions: 2}, []func(*chaos.Report) bool{few}, true},
		"too little, all time":    {chaos.Report{Verdict: report.Pass, Acquisitions: 2}, []func(*chaos.Report) bool{few}, false},
		"enough":                  {chaos.Report{Starved: true, Verdict: report.Pass, Acquisitions: 5}, []func(*chaos.Report) bool{few}, false},
		"convicted, and too few":  {chaos.Report{Starved: true, Verdict: report.Violation, Acquisitions: 2}, []func(*chaos.Report) bool{few}, false},
		"nobody asks for a count": {chaos.Report{Starved: true, Verdict: report.Pass}, nil, false},
	} {
		if got := hurried(&tt.rep, tt.enough); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestABrokenLockIsLookedForInSeveralRuns(t *testing.T) {
	drawn, err := plan.FindScenario("calm")
	if err != nil {
		t.Fatal(err)
	}
	planned, err := drawn.Draw(1, plan.Size{Masters: 3, Clients: 2, Duration: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	for name, cfg := range map[string]chaos.Config{"scenario": {Scenario: "calm", Seed: 1, Duration: 200 * time.Millisecond}, "plan": {Plan: planned}} {
		for _, tt := range []struct{ catches, runs uint64 }{{1, 1}, {3, 3}, {0, most}} {
			cfg.Backend, cfg.Dir, cfg.Limits = "embedded", t.TempDir(), chaos.Limits{Tail: 100 * time.Millisecond, Orphan: 100 * time.Millisecond, Judged: 0.01}
			var runs uint64
			rep := Caught(t, cfg, func(rep *chaos.Report) bool {
				if runs++; rep.Seed != runs {
					t.Errorf("%s: run %d has seed %d", name, runs, rep.Seed)
				}
				return runs == tt.catches
			})
			if runs != tt.runs || rep.Seed != tt.runs {
				t.Errorf("%s: caught in run %d: there were %d, and the report is of %d", name, tt.catches, runs, rep.Seed)
			}
		}
	}
}
