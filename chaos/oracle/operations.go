package oracle

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NameOperations is the name of Operations.
const NameOperations = "operations"

// Tally counts operations on holds.
type Tally struct {
	Judged int `json:"judged"`
	Failed int `json:"failed"`
	first  Violation
}

// Operations counts how releases and extensions fared, and finds that fewer than atLeast of either did what was asked.
//
// One is judged if its hold had time left when it returned, nobody had told that it was lost, and its client could reach
// a majority from settle before the hold was asked for until then; the machine must not have stood still meanwhile. Then
// a majority has the key, and can be told. It may have been another majority: that is why some may fail while faults are on.
func Operations(v *history.View, settle time.Duration, atLeast float64) (releases, extensions Tally, found []Violation) {
	reach, still := newReach(v), stalls(v)
	judge := func(t *Tally, a *history.Attempt, what string, call, ret int64, outcome history.Outcome, event int) {
		own := history.Attempt{Call: a.Call, Return: ret}
		if outcome == history.Pending || outcome == history.Unsupported || ret > boundInForce(a) || min(a.Done, a.Stopped) < call ||
			!inside(&own, reach.of(a.Client), int64(settle)) || covered(window{call, ret + 1}, still) > 0 {
			return
		}
		if t.Judged++; outcome == history.Acquired {
			return
		}
		if t.Failed++; t.Failed == 1 {
			t.first = Violation{
				Oracle: NameOperations, Key: a.Key, At: ret, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent, event},
				Text: fmt.Sprintf("%s of %s of %q at %s: %s %s", what, holder(a), a.Key, at(call), outcome, v.Events[event].Note),
			}
		}
	}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if !a.Granted() {
			continue
		}
		for _, x := range a.Extensions {
			if o := v.Events[x.Event].Outcome; !x.Seen && x.Return != history.Never && o != history.Cancelled {
				judge(&extensions, a, "the extension", x.Call, x.Return, o, x.Event)
			}
		}
		if a.ReleaseReturn != history.Never {
			judge(&releases, a, "the release", a.ReleaseCall, a.ReleaseReturn, v.Events[a.ReleaseEvent].Outcome, a.ReleaseEvent)
		}
	}
	for _, t := range []struct {
		*Tally
		what string
	}{{&releases, "releases"}, {&extensions, "extensions"}} {
		if float64(t.Judged-t.Failed) < atLeast*float64(t.Judged) {
			x := t.first
			x.Text = fmt.Sprintf("%d of %d %s failed although the hold had time left and a majority was reachable (at least %.0f %% are to work); the first is %s",
				t.Failed, t.Judged, t.what, 100*atLeast, x.Text)
			found = append(found, x)
		}
	}
	return releases, extensions, found
}
