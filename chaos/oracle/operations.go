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
	Ended  int  `json:"ended"`
	Judged int  `json:"judged"`
	Failed int  `json:"failed"`
	worked bool // one did, judged or not
	first  Violation
}

// Unjudged tells whether none of many operations could be judged, and none worked all the same.
func (t *Tally) Unjudged() bool { return t.Judged == 0 && t.Ended >= 10 && !t.worked }

// Operated counts how releases, extensions and holds fared. A hold fares badly if its Done closes, or no time remains,
// in the first half of its time.
type Operated struct {
	Releases   Tally `json:"releases"`
	Extensions Tally `json:"extensions"`
	Holds      Tally `json:"holds"`
}

// Operations counts how operations on holds fared. It finds kinds of operation that fail more often than atLeast
// allows: so often that chance does not explain it. With too few judged operations to tell, or if none of ten could be
// judged and none worked, the finding is unknown.
//
// Operations judges an operation only if a correct lock could have done it:
//
//   - When the operation ended, the hold had time left, and nothing had reported it lost.
//   - Its client could reach a majority of masters, from settle before the acquisition to the end of the operation.
//   - The machine gave the run time, the client's process was not stopped, and masters answered the harness without
//     delay ([history.Stall], [history.Slow]). Nine tenths of the operation's time are enough.
//
// Some operations may fail while faults are on, because the majority in reach need not be the one that granted the
// hold. An extension that was confirmed has failed if the new bound is less than half a ttl after its call.
func Operations(v *history.View, settle time.Duration, atLeast float64) (o Operated, found []Violation) {
	j := operations{v: v, reach: newReach(v), settle: int64(settle), paused: pauses(v)}
	j.slow = slowed(v, j.settle)
	for a := range v.Holds() {
		j.hold(a)
		j.calls(a)
	}
	for _, t := range []struct {
		Tally
		what string
	}{{j.Releases, "releases"}, {j.Extensions, "extensions"}, {j.Holds, "holds, by their end,"}} {
		found = append(found, t.finding(t.what, atLeast, v.End)...)
	}
	return j.Operated, found
}

// finding judges one kind of operation.
func (t *Tally) finding(what string, atLeast float64, end int64) []Violation {
	x := t.first
	switch {
	case t.Unjudged():
		return []Violation{{
			Oracle: NameOperations, At: end, Unknown: true, Text: fmt.Sprintf("none of %d %s could be judged: a "+
				"majority was out of reach, or masters answered late", t.Ended, what),
		}}
	case float64(t.Failed) <= (1-atLeast)*float64(t.Judged):
		return nil
	case !beyondChance(t.Failed, t.Judged, 1-atLeast):
		x.Unknown = true
	}
	x.Text = fmt.Sprintf("%d of %d %s failed although the hold had time left and a majority was reachable (at least "+
		"%.0f %% must work); the first is %s", t.Failed, t.Judged, what, 100*atLeast, x.Text)
	return []Violation{x}
}

// operations is one judgement while it lasts.
type operations struct {
	Operated
	v      *history.View
	reach  *reach
	slow   []window // times when masters may have answered late
	paused map[int][]window
	settle int64
}

// operation is one that is to be judged.
type operation struct {
	what      string
	call, ret int64
	outcome   history.Outcome
	event     int // that ended it
}

// hold judges whether Done closed, or no time remained, too early.
func (j *operations) hold(a *history.Attempt) {
	half := a.Return + (a.Until-a.Return)/2
	ended := lost(a)
	op := operation{"the hold", a.Return, min(ended, a.ReleaseCall, half), history.Acquired, a.ReturnEvent}
	switch {
	case a.NoDone && !a.Left, a.Until <= a.Return, min(ended, a.ReleaseCall) == history.Never:
		return
	case ended < min(a.ReleaseCall, half):
		op.outcome, op.event = history.Expired, max(a.DoneEvent, a.ReturnEvent)
	}
	j.judge(&j.Holds, a, op)
}

// calls judges the extensions and the release of a hold.
func (j *operations) calls(a *history.Attempt) {
	for _, x := range a.Extensions {
		outcome := j.v.Events[x.Event].Outcome
		if x.OK && x.Until-x.Call < x.TTL/2 {
			outcome = history.Expired // it was confirmed, and gave no time
		}
		if !x.Seen && x.Return != history.Never && outcome != history.Cancelled {
			j.judge(&j.Extensions, a, operation{"the extension", x.Call, x.Return, outcome, x.Event})
		}
	}
	if a.ReleaseReturn != history.Never {
		outcome := j.v.Events[a.ReleaseEvent].Outcome
		j.judge(&j.Releases, a, operation{"the release", a.ReleaseCall, a.ReleaseReturn, outcome, a.ReleaseEvent})
	}
}

func (j *operations) judge(t *Tally, a *history.Attempt, op operation) {
	due := op.ret
	if op.outcome == history.Cancelled {
		due = op.call // a release that outlasts its hold has failed for that reason
	}
	own, took := history.Attempt{Call: a.Call, Return: op.ret}, window{op.call, op.ret + 1}
	until := boundInForce(a)
	lacks := op.outcome == history.Unsupported && t != &j.Releases // a lock may lack all but releases
	if op.outcome == history.Pending || lacks || op.call >= until {
		return
	}
	t.Ended++
	t.worked = t.worked || op.outcome == history.Acquired
	switch {
	case due > until, min(a.Done, a.Stopped) < op.call:
		return
	case !inside(&own, j.reach.of(a.Client), j.settle):
		return
	case 10*(covered(took, j.slow)+covered(took, j.paused[a.Client])) > op.ret-op.call:
		return
	}
	if t.Judged++; op.outcome == history.Acquired {
		return
	}
	if t.Failed++; t.Failed == 1 {
		t.first = Violation{
			Oracle: NameOperations, Key: a.Key, At: op.ret, Attempts: []uint64{a.ID},
			Events: []int{a.CallEvent, op.event},
			Text: fmt.Sprintf("%s of %s of %q at %s: %s %s", op.what, holder(a), a.Key, at(op.ret), op.outcome,
				j.v.Events[op.event].Note),
		}
	}
}
