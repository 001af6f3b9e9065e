package verdict

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/report"
)

func TestHazard137AReleaseThatLeavesTheKeyOnAMasterInReachIsFound(t *testing.T) {
	const sec = int64(time.Second)
	stall := history.Event{At: 6 * sec, Type: history.Stall, Client: history.Everyone, Value: sec}
	for name, tt := range map[string]struct {
		seen  int64 // in seconds
		owner string
		more  []history.Event
		want  int
	}{
		"it is gone":              {8, "", nil, 0},
		"it is there at once":     {6, "me", nil, 0},
		"it is there later":       {8, "me", nil, 1},
		"another's":               {8, "you", nil, 0},
		"the machine stood still": {8, "me", []history.Event{stall}, 0},
		"a master answered late":  {8, "me", []history.Event{{At: 4 * sec, Type: history.Slow, Value: sec}}, 0},
		"a fault was on": {8, "me", []history.Event{
			{At: 3 * sec, Type: history.FaultOn, Name: "pause"}, {At: 4 * sec, Type: history.FaultOff, Name: "pause"},
		}, 0},
		"a fault is on": {8, "me", []history.Event{{At: 7 * sec, Type: history.FaultOn, Name: "pause"}}, 0},
		"a fault comes": {8, "me", []history.Event{{At: 9 * sec, Type: history.FaultOn, Name: "pause"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := history.NewView(append([]history.Event{
				{At: 2 * sec, Type: history.AcquireCall, Attempt: 1, Key: "k"},
				{
					At: 3 * sec, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: "me",
					Until: 20 * sec,
				},
				{At: 4 * sec, Type: history.ReleaseCall, Attempt: 1},
				{At: 5 * sec, Type: history.ReleaseReturn, Attempt: 1, Outcome: history.Acquired},
			}, tt.more...))
			f := &Facts{Report: &report.Report{
				Watched: []string{"k"}, Samples: []report.Sample{
					{At: tt.seen * sec, Until: tt.seen*sec + 1, Master: 3, Up: true, Owners: []string{tt.owner}},
				},
			}}
			if found := f.lagging(v, 2*time.Second); len(found) != tt.want {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestKeysOnUnusedMastersAreFound has a key on a master before it joined, while it was used, just after that, and
// later.
func TestKeysOnUnusedMastersAreFound(t *testing.T) {
	const second = int64(time.Second)
	f := &Facts{
		Report: &report.Report{Watched: []string{"k"}},
		Unused: [][][2]int64{{{0, 0}}, {{0, 5 * second}, {12 * second, history.Never}}},
	}
	for at, want := range map[int64]int{2: 1, 6: 0, 11: 0, 12: 0, 14: 1} {
		for master, violations := range []int{0, want} {
			f.Report.Samples = []report.Sample{
				{At: at*second + 1, Until: at*second + 2, Master: master, Up: true, Owners: []string{"somebody"}},
				{At: at*second + 3, Until: at*second + 4, Master: master, Up: true, Owners: []string{"somebody"}},
				{At: at*second + 5, Until: at*second + 6, Master: master, Up: true, Owners: []string{""}},
			}
			if found := f.strays(time.Second); len(found) != violations {
				t.Errorf("at %d s on master %d: %v", at, master, found)
			}
		}
	}
}

// TestAReleaseMustReachEachSetOfMasters: a key that a majority of one set still has is not
// released, even if the other set has removed it.
func TestAReleaseMustReachEachSetOfMasters(t *testing.T) {
	const second = int64(time.Second)
	v := history.NewView([]history.Event{
		{At: 0, Type: history.AcquireCall, Attempt: 1, Key: "k"},
		{At: 1, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: "me", Until: 9 * second},
		{At: second, Type: history.ReleaseCall, Attempt: 1},
		{At: second + 1, Type: history.ReleaseReturn, Attempt: 1, Outcome: history.Acquired},
	})
	for _, tt := range []struct {
		sets [][]int
		have []int
		want int
	}{
		{[][]int{{0, 1, 2}, {0, 3, 4}}, []int{3, 4}, 1},
		{[][]int{{0, 1, 2}, {0, 3, 4}}, []int{1, 3}, 0},
		{[][]int{{0, 1, 2}}, []int{1, 3, 4}, 0},
		{[][]int{{0, 1, 2, 3, 4}}, []int{1, 3, 4}, 1},
	} {
		f := &Facts{Report: &report.Report{Watched: []string{"k"}}, SetsOf: func(string) [][]int { return tt.sets }}
		for _, m := range tt.have {
			look := report.Sample{At: 3 * second, Master: m, Up: true, Owners: []string{"me"}}
			f.Report.Samples = append(f.Report.Samples, look)
		}
		if found := f.lingering(v, time.Second); len(found) != tt.want {
			t.Errorf("%v have a hold of %v: %v", tt.have, tt.sets, found)
		}
	}
}

// TestOfALockThatIsHandedOverOnlyTheLastReleaseIsJudged: the key of a successor with the same owner value does not
// belong to the previous hold; a key that is left after the last hold is a violation.
func TestOfALockThatIsHandedOverOnlyTheLastReleaseIsJudged(t *testing.T) {
	const second = int64(time.Second)
	v := history.NewView([]history.Event{
		{At: 0, Type: history.AcquireCall, Attempt: 1, Key: "k"},
		{At: 1, Type: history.AcquireReturn, Attempt: 1, Outcome: history.Acquired, Owner: "me", Until: 9 * second},
		{At: 2, Type: history.AcquireCall, Attempt: 2, Key: "k"},
		{At: second, Type: history.ReleaseCall, Attempt: 1},
		{
			At: second + 1, Type: history.AcquireReturn, Attempt: 2, Outcome: history.Acquired, Owner: "me",
			Until: 9 * second,
		},
		{At: second + 2, Type: history.ReleaseReturn, Attempt: 1, Outcome: history.Acquired},
		{At: 5 * second, Type: history.ReleaseCall, Attempt: 2},
		{At: 5*second + 1, Type: history.ReleaseReturn, Attempt: 2, Outcome: history.Acquired},
	})
	for seen, want := range map[int64]int{4: 0, 5: 0, 7: 1} {
		look := report.Sample{At: seen * second, Master: 0, Up: true, Owners: []string{"me"}}
		f := &Facts{
			Report: &report.Report{Watched: []string{"k"}, Samples: []report.Sample{look}},
			SetsOf: func(string) [][]int { return [][]int{{0}} },
		}
		found := f.lingering(v, time.Second)
		if len(found) != want || want > 0 && found[0].Attempts[0] != 2 {
			t.Errorf("the key is there after %d s: %v", seen, found)
		}
	}
}
