package verdict

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// TestHazard130AnOwnerThatNoMasterHasIsFound looks at some of five masters while a client holds a key.
func TestHazard130AnOwnerThatNoMasterHasIsFound(t *testing.T) {
	const sec = int64(time.Second)
	all := [][]int{{0, 1, 2, 3, 4}}
	look := func(at int64, master int, owner string) report.Sample {
		return report.Sample{At: at, Until: at + 1, Master: master, Up: true, Owners: []string{owner}}
	}
	down := look(3*sec, 2, "")
	down.Up = false
	for name, tt := range map[string]struct {
		reported string
		looks    []report.Sample
		want     int
		named    string
	}{
		"as reported": {
			"me", []report.Sample{look(3*sec, 0, "me"), look(3*sec, 1, "me"), look(3*sec, 2, "me")}, 0, "me",
		},
		"on one of three": {
			"me", []report.Sample{look(3*sec, 0, ""), look(3*sec, 1, ""), look(3*sec, 2, "me")}, 0, "me",
		},
		"on none of three": {
			"me", []report.Sample{look(3*sec, 0, "it"), look(3*sec, 1, "it"), look(3*sec, 2, "")}, 1, "me",
		},
		"on none of two": {
			"me", []report.Sample{look(3*sec, 0, "it"), look(3*sec, 1, "it"), look(3*sec, 1, "it")}, 0, "me",
		},
		"one look before it was held": {
			"me", []report.Sample{look(3*sec, 0, ""), look(3*sec, 1, ""), look(sec, 2, "")}, 0, "me",
		},
		"one look after its end": {
			"me", []report.Sample{look(3*sec, 0, ""), look(3*sec, 1, ""), look(8*sec, 2, "")}, 0, "me",
		},
		"one look in vain": {"me", []report.Sample{look(3*sec, 0, ""), look(3*sec, 1, ""), down}, 0, "me"},
		"not reported, on three": {
			"", []report.Sample{look(3*sec, 0, "it"), look(3*sec, 1, "it"), look(3*sec, 2, "it")}, 0, "it",
		},
		"not reported, on two": {
			"", []report.Sample{look(3*sec, 0, "it"), look(3*sec, 1, "it"), look(3*sec, 2, "")}, 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := []history.Event{
				{At: sec, Type: history.AcquireCall, Attempt: 1, Key: "k", TTL: 9 * sec},
				{
					At: 2 * sec, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: tt.reported,
					Until: 9 * sec,
				},
				{At: 5 * sec, Type: history.ReleaseCall, Attempt: 1},
			}
			f := &Facts{
				Report: &report.Report{Plan: &plan.Plan{}, Watched: []string{"k"}, Samples: tt.looks},
				SetsOf: func(string) [][]int { return all },
			}
			if found := f.strangers(history.NewView(events)); len(found) != tt.want {
				t.Errorf("found %v", found)
			}
			if f.name(events); events[1].Owner != tt.named {
				t.Errorf("its owner is %q, want %q", events[1].Owner, tt.named)
			}
		})
	}
}

func TestAKeyThatOutlivesItsTTLIsFound(t *testing.T) {
	const sec = int64(time.Second)
	v := history.NewView([]history.Event{
		{At: 0, Type: history.AcquireCall, Attempt: 1, Key: "k", TTL: 2 * sec},
		{At: 1, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: "me", Until: 2 * sec},
	})
	for ttl, want := range map[time.Duration]int{
		2 * time.Second: 0, 4 * time.Second: 0, 20 * time.Second: 1, 2000 * time.Second: 1, -1: 1,
	} {
		f := &Facts{Report: &report.Report{
			Plan: &plan.Plan{}, Watched: []string{"k"},
			Samples: []report.Sample{{At: 2, Until: 3, Up: true, Owners: []string{"me"}, TTLs: []time.Duration{ttl}}},
		}}
		if found := f.tooLong(v); len(found) != want {
			t.Errorf("%v: found %v", ttl, found)
		}
		f.Report.Plan.Steps = []plan.Step{{Fault: "clock-step"}}
		if found := f.tooLong(v); len(found) > 0 {
			t.Errorf("%v, and clocks are set: found %v", ttl, found)
		}
	}
}

func TestMastersThatNobodyCouldSeeAreNoPass(t *testing.T) {
	for away, want := range map[int]int{0: 0, 2: 0, 3: 1, 5: 1} {
		f := &Facts{Report: &report.Report{}}
		for m := range 5 {
			f.Report.Samples = append(f.Report.Samples, report.Sample{Master: m},
				report.Sample{Master: m, Up: m >= away})
		}
		if why := f.blind(); len(why) != want {
			t.Errorf("%d are not seen: %v", away, why)
		}
	}
}
