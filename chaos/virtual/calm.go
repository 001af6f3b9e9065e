package virtual

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// quickly is how long a call for a free key may take.
const quickly = 250 * time.Millisecond

// failed finds calls that went wrong in a run without faults. There every acquisition of a free key succeeds soon, and
// a hold is released, is extended and lasts as it was promised.
func (w *world) failed(v *history.View) (out []oracle.Violation) {
	if len(w.plan.Faults) > 0 {
		return nil
	}
	add := func(name string, a *history.Attempt, at int64, format string, args ...any) {
		out = append(out, oracle.Violation{
			Oracle: name, Key: a.Key, At: at, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
			Text: fmt.Sprintf("no fault was on, and client %d (attempt %d) ", a.Client, a.ID) +
				fmt.Sprintf(format, args...),
		})
	}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		alone := free(v, a)
		switch {
		case a.Outcome == history.NoQuorum || a.Outcome == history.Failed || a.Outcome == history.Expired && alone:
			add(oracle.NameOperations, a, a.Return, "could not acquire %q: %s %s", a.Key, a.Outcome, a.Note)
		case a.Outcome == history.Held && alone:
			add(oracle.NameOperations, a, a.Return, "was refused %q, which was free", a.Key)
		case a.Outcome == history.Held && a.Return < a.Call+a.Wait:
			add(oracle.NameOperations, a, a.Return, "did not wait for %q as long as it was to: %v of %v", a.Key,
				time.Duration(a.Return-a.Call), time.Duration(a.Wait))
		case alone && a.Return-a.Call > int64(quickly):
			add(oracle.NamePace, a, a.Return, "waited for %q for %v, and nobody else wanted it", a.Key,
				time.Duration(a.Return-a.Call))
		}
		if a.Granted() {
			held(v, a, add)
		}
	}
	return out
}

// held judges the operations of a hold.
func held(v *history.View, a *history.Attempt,
	add func(name string, a *history.Attempt, at int64, format string, args ...any),
) {
	for _, x := range a.Extensions {
		if x.Return < min(a.Until, a.Done) && !x.OK && v.Events[x.Event].Outcome != history.Unsupported {
			add(oracle.NameOperations, a, x.Call, "could not extend %q", a.Key)
		}
	}
	if a.ReleaseReturn < min(a.LastUntil(), a.Done) && !a.Released {
		add(oracle.NameOperations, a, a.ReleaseCall, "could not release %q", a.Key)
	}
	if early := a.LastUntil() - a.Done; a.Done < a.ReleaseCall && early > a.TTL/4 {
		add(oracle.NameOperations, a, a.Done, "lost %q %v before its bound: Done closed", a.Key, time.Duration(early))
	}
}

// free reports whether no other attempt or hold of the key was on during an attempt, or shortly before it.
func free(v *history.View, a *history.Attempt) bool {
	from, to := a.Call-int64(settles), min(a.Return, v.End)
	for i := range v.Attempts {
		b := &v.Attempts[i]
		end := v.Asks(b)
		if b.Granted() {
			end = max(end, min(b.LastUntil(), b.ReleaseReturn))
		}
		if b.ID != a.ID && b.Key == a.Key && b.Call < to && from < end {
			return false
		}
	}
	return true
}
