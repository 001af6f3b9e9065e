package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NamePace is the name of Pace.
const NamePace = "pace"

// slowCalls is the share of calls that may take longer than the bound.
const slowCalls = 0.05

// Pace finds slow calls: acquisitions and releases that take longer than bound although nothing delays them. Nothing
// delays a call if four things hold. A majority of masters is in reach, from settle before the call until it ends. The
// masters answer in time. Neither the machine nor the client stands still. And no other client has or wants the key.
// One call in twenty may be slow. More are a violation, unless chance explains them.
func Pace(v *history.View, bound, settle time.Duration) []Violation {
	reach, paused := newReach(v), pauses(v)
	late := slowed(v, int64(settle))
	acquired, released := pace{what: "acquisitions"}, pace{what: "releases"}
	v.ByKey(func(_ string, attempts []int) {
		for _, i := range attempts {
			a := &v.Attempts[i]
			if !a.Granted() || a.Lock != 0 {
				continue
			}
			fair := func(from, to int64) bool {
				call := history.Attempt{Call: from, Return: to}
				lost := covered(window{from, to}, late) + covered(window{from, to}, paused[a.Client])
				return inside(&call, reach.of(a.Client), int64(settle)) && 10*lost <= to-from
			}
			if fair(a.Call, a.Return) {
				acquired.add(a, a.Call, a.Return, bound, func() bool { return !contended(v, attempts, a) })
			}
			if a.ReleaseReturn != history.Never && fair(a.ReleaseCall, a.ReleaseReturn) {
				released.add(a, a.ReleaseCall, a.ReleaseReturn, bound, func() bool { return true })
			}
		}
	})
	return slices.Concat(acquired.finding(bound), released.finding(bound))
}

// pace counts calls of one kind.
type pace struct {
	what         string
	slow, judged int
	worst        Violation
	longest      int64
}

// add counts a call. A slow one counts only if it had the key to itself.
func (p *pace) add(a *history.Attempt, from, to int64, bound time.Duration, alone func() bool) {
	d := to - from
	if d > int64(bound) {
		if !alone() {
			return
		}
		p.slow++
	}
	if p.judged++; d > p.longest {
		p.longest = d
		p.worst = Violation{
			Oracle: NamePace, Key: a.Key, At: from, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
			Text: fmt.Sprintf("by %s, of %q, from %s to %s", holder(a), a.Key, at(from), at(to)),
		}
	}
}

func (p *pace) finding(bound time.Duration) []Violation {
	if !beyondChance(p.slow, p.judged, slowCalls) {
		return nil
	}
	p.worst.Text = fmt.Sprintf("%d of %d %s took longer than %v although nothing was in their way (at most %.0f %% "+
		"may); the slowest was %s", p.slow, p.judged, p.what, bound, 100*slowCalls, p.worst.Text)
	return []Violation{p.worst}
}
