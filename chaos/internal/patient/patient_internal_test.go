package patient

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/oracle"
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
	stalled := chaos.Report{Verdict: report.Unknown, StalledMS: 1}
	stalled.Service.Attempts, stalled.Service.Total = 9, 100
	if !starved(&stalled) {
		t.Error("a run that judged 9 of 100 attempts because of stalls is not repeated")
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
