package oracle

import (
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// lost returns when the hold ended without a release. The hold of a killed client is not lost.
func lost(a *history.Attempt) int64 {
	if a.Killed() {
		return a.Done
	}
	return min(a.Done, a.Stopped)
}

// Lost reports whether a hold ended before its holder released it.
func Lost(a *history.Attempt) bool { return lost(a) != history.Never && lost(a) < a.ReleaseCall }

func lastTTL(a *history.Attempt) window { return window{max(a.Return, lost(a)-a.TTL), lost(a)} }

// LastTTL returns the time when a lost hold should have been extended.
func LastTTL(a *history.Attempt) (from, to int64) { w := lastTTL(a); return w.from, w.to }

// Kept finds renewed holds that were lost although their client could reach a majority of masters
// that extend holds. It must have had this majority for at least four fifths of the hold's last
// ttl, or of the hold's life if that was shorter. A library that renews in time and tries again
// survives so short an outage. Kept needs KeepLost and KeepBack events if there were such outages,
// and Renew on the attempts, and passes over those that are Excused. [Victims] judges those that are Quiet.
func Kept(v *history.View) []Violation {
	var out []Violation
	k := newKeeping(v)
	for a := range v.Holds() {
		if a.Renew && !a.Quiet && Lost(a) && !k.excuses(a) {
			out = append(out, k.violation(NameKept, a))
		}
	}
	return out
}

// keeping knows when each client could extend its holds.
type keeping struct {
	v       *history.View
	still   standstill
	windows map[int][]window
}

func newKeeping(v *history.View) *keeping {
	return &keeping{v: v, still: newStandstill(v), windows: make(map[int][]window)}
}

// without is for how much of its last ttl a lost hold could not be extended.
func (k *keeping) without(a *history.Attempt) int64 {
	ws, known := k.windows[a.Client]
	if !known {
		ws = subtract(between(k.v, a.Client, history.KeepLost, history.KeepBack), k.still.of(a.Client))
		k.windows[a.Client] = ws
	}
	last := lastTTL(a)
	return last.to - last.from - covered(last, ws)
}

// excuses reports whether the loss of a hold is no defect: the outage was too long to keep it.
func (k *keeping) excuses(a *history.Attempt) bool {
	last := lastTTL(a)
	return a.Excused || Lost(a) && k.without(a) > (last.to-last.from)/5
}

func (k *keeping) violation(oracle string, a *history.Attempt) Violation {
	last := lastTTL(a)
	return Violation{
		Oracle: oracle, Key: a.Key, At: lost(a), Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
		Text: fmt.Sprintf("%s lost %q at %s, %s after it got it: it was to be renewed, and of its last %s a majority "+
			"of masters could extend it for all but %s", holder(a), a.Key, at(lost(a)), took(lost(a)-a.Return),
			took(last.to-last.from), took(k.without(a))),
	}
}
