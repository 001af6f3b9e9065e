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

// Operated counts how releases, extensions and holds fared. A hold fares badly if its Done closes in the first half of
// its time.
type Operated struct {
	Releases   Tally `json:"releases"`
	Extensions Tally `json:"extensions"`
	Holds      Tally `json:"holds"`
}

// Operations counts how operations on holds fared, and finds that fewer than atLeast of a sort did what was asked, and
// that three or more did not.
//
// One is judged if its hold had time left when it returned, nobody had told that it was lost, and its client could
// reach a majority from settle before the hold was asked for until then; the machine must not have stood still
// meanwhile, or shortly before. Then a majority has the key, and can be told. It may have been another majority: that
// is why some may fail while faults are on.
func Operations(v *history.View, settle time.Duration, atLeast float64) (o Operated, found []Violation) {
	reach, felt := newReach(v), echoes(stalls(v), int64(settle))
	judge := func(t *Tally, a *history.Attempt, what string, call, ret int64, outcome history.Outcome, event int) {
		due := ret
		if outcome == history.Cancelled {
			due = call // that it took longer than the hold lasts is what is wrong with it
		}
		own := history.Attempt{Call: a.Call, Return: ret}
		if outcome == history.Pending || outcome == history.Unsupported || due > boundInForce(a) ||
			min(a.Done, a.Stopped) < call ||
			!inside(&own, reach.of(a.Client), int64(settle)) || covered(window{call, ret + 1}, felt) > 0 {
			return
		}
		if t.Judged++; outcome == history.Acquired {
			return
		}
		if t.Failed++; t.Failed == 1 {
			t.first = Violation{
				Oracle: NameOperations, Key: a.Key, At: ret, Attempts: []uint64{a.ID}, Events: []int{
					a.CallEvent, event,
				},
				Text: fmt.Sprintf("%s of %s of %q at %s: %s %s", what, holder(a), a.Key, at(call), outcome,
					v.Events[event].Note),
			}
		}
	}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if !a.Granted() {
			continue
		}
		switch half := a.Return + (a.Until-a.Return)/2; {
		case a.NoDone || a.Until <= a.Return:
		case a.Done < min(a.ReleaseCall, half):
			judge(&o.Holds, a, "the hold", a.Return, a.Done, history.Expired, a.DoneEvent)
		case min(a.Done, a.ReleaseCall) != history.Never:
			judge(&o.Holds, a, "the hold", a.Return, min(a.Done, a.ReleaseCall, half), history.Acquired, a.ReturnEvent)
		}
		for _, x := range a.Extensions {
			if outcome := v.Events[x.Event].Outcome; !x.Seen && x.Return != history.Never &&
				outcome != history.Cancelled {
				judge(&o.Extensions, a, "the extension", x.Call, x.Return, outcome, x.Event)
			}
		}
		if a.ReleaseReturn != history.Never {
			judge(&o.Releases, a, "the release", a.ReleaseCall, a.ReleaseReturn, v.Events[a.ReleaseEvent].Outcome,
				a.ReleaseEvent)
		}
	}
	for _, t := range []struct {
		*Tally
		what string
	}{{&o.Releases, "releases"}, {&o.Extensions, "extensions"}, {&o.Holds, "holds, by their Done,"}} {
		if t.Failed >= 3 && float64(t.Judged-t.Failed) < atLeast*float64(t.Judged) {
			x := t.first
			x.Text = fmt.Sprintf("%d of %d %s failed although the hold had time left and a majority was reachable "+
				"(at least %.0f %% are to work); the first is %s",
				t.Failed, t.Judged, t.what, 100*atLeast, x.Text)
			found = append(found, x)
		}
	}
	return o, found
}
