package verdict

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// dead is the history of a client that has a majority and never gets the key.
func dead() []history.Event {
	var events []history.Event
	for i := range uint64(20) {
		at := int64(i) * int64(time.Second)
		events = append(events,
			history.Event{At: at, Type: history.AcquireCall, Attempt: i + 1, Key: "k", TTL: int64(time.Second)},
			history.Event{
				At: at + int64(time.Second), Type: history.AcquireReturn, Attempt: i + 1, Outcome: history.NoQuorum,
			})
	}
	return events
}

// While the reach of masters is unknown, a run of a dead lock is no evidence against it.
func TestNobodyIsConvictedWhereTheReachOfMastersIsUnknown(t *testing.T) {
	end := int64(20 * time.Second)
	for _, tt := range []struct {
		name string
		more []history.Event
		want report.Verdict
	}{
		{"nothing went wrong", nil, report.Violation},
		{"the machine stood still a little", []history.Event{{Type: history.Stall, Value: end / 10}}, report.Violation},
		{"the machine stood still", []history.Event{{Type: history.Stall, Value: end * 3 / 5}}, report.Unknown},
		{"another hold is excused", []history.Event{{At: end, Type: history.Excused, Attempt: 3}}, report.Violation},
		{"a fault went wrong", []history.Event{{At: end, Type: history.Excused}}, report.Unknown},
	} {
		j, err := Check(append(dead(), tt.more...), oracle.Limits{Enough: 1}, true)
		if err != nil {
			t.Fatal(err)
		}
		if j.Verdict != tt.want {
			t.Errorf("%s: %v, want %v: %q", tt.name, j.Verdict, tt.want, j.Reasons)
		}
	}
}

func TestARunTellsItsHistoryThatAFaultWentWrong(t *testing.T) {
	f := &Facts{Failures: []string{"expired-certificate: i/o timeout"}, Report: &report.Report{Plan: &plan.Plan{}}}
	v := history.NewView(dead())
	v = history.NewView(append(v.Events, f.excuses(v)...))
	found := doubted([]oracle.Violation{{Oracle: oracle.NameReleased}}, v, oracle.Limits{Stalled: 1})
	if !found[0].Unknown {
		t.Error("a finding about the reach of masters still counts")
	}
}

// Two holders at once are a violation whatever else went wrong.
func TestDoubtAboutTheReachOfMastersExcusesNoOverlap(t *testing.T) {
	v := history.NewView([]history.Event{{At: 1, Type: history.Excused}})
	found := []oracle.Violation{{Oracle: oracle.NameOverlap}, {Oracle: oracle.NameOutage}}
	found = doubted(found, v, oracle.Limits{Stalled: 1})
	if found[0].Unknown || !found[1].Unknown {
		t.Errorf("%+v", found)
	}
}

// A key that stayed for too long proves nothing if the machine stood still for much of the run.
func TestAStarvedRunConvictsNobodyOfBeingLate(t *testing.T) {
	for stalled, unknown := range map[int64]bool{20: false, 30: true} {
		v := history.NewView([]history.Event{{Type: history.Stall, Value: stalled}, {At: 100, Type: history.Healed}})
		found := []oracle.Violation{{Oracle: oracle.NameOrphan}, {Oracle: oracle.NameOverlap}}
		found = doubted(found, v, oracle.Limits{Stalled: 0.5})
		if found[0].Unknown != unknown || found[1].Unknown {
			t.Errorf("the machine stood still for %d %%: %+v", stalled, found)
		}
	}
}
