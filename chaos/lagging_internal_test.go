package chaos

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
			w := &watch{
				keys: []string{"k"}, samples: []report.Sample{
					{At: tt.seen * sec, Until: tt.seen*sec + 1, Master: 3, Up: true, Owners: []string{tt.owner}},
				},
			}
			if found := w.lagging(v, 2*time.Second); len(found) != tt.want {
				t.Errorf("found %v", found)
			}
		})
	}
}
