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

// Pace finds slow calls: acquisitions, extensions and releases that take longer than bound although nothing delays
// them. Nothing delays a call if four things hold. A majority of masters is in reach, from settle before the call
// until it ends. The masters answer in time. The machine and the client are not suspended. And no other client
// has or wants the key; but an attempt that does not wait has no time for others, whether it is granted or not. One
// call in twenty may be slow. More are a violation, unless chance explains them.
func Pace(v *history.View, bound, settle time.Duration) []Violation {
	reach, paused := newReach(v), pauses(v)
	late := slowed(v, int64(settle))
	acquired, released, extended := pace{what: "acquisitions"}, pace{what: "releases"}, pace{what: "extensions"}
	for _, attempts := range v.ByKey() {
		for _, a := range attempts {
			try := a.Wait == 0 && a.Patience == 0
			if !a.Granted() && !try || a.Lock != 0 {
				continue
			}
			fair := func(from, to int64) bool {
				call := history.Attempt{Call: from, Return: to}
				lost := covered(window{from, to}, late) + covered(window{from, to}, paused[a.Client])
				return inside(&call, reach.of(a.Client), int64(settle)) && 10*lost <= to-from
			}
			asked := v.Asks(a)
			if ended(a.Outcome, a.Call, asked, bound) && fair(a.Call, asked) {
				acquired.add(a, a.Call, asked, bound, func() bool { return try || !contended(attempts, a) })
			}
			for _, x := range a.Extensions {
				end := min(x.Return, a.Stopped, v.End)
				if !x.Seen && ended(v.Events[x.Event].Outcome, x.Call, end, bound) && fair(x.Call, end) {
					extended.add(a, x.Call, end, bound, func() bool { return true })
				}
			}
			if a.ReleaseReturn != history.Never && fair(a.ReleaseCall, a.ReleaseReturn) {
				released.add(a, a.ReleaseCall, a.ReleaseReturn, bound, func() bool { return true })
			}
		}
	}
	return slices.Concat(acquired.finding(bound), extended.finding(bound), released.finding(bound))
}

// ended reports whether a call shows its pace: it was answered, or it was cut short when it had taken too long already.
func ended(outcome history.Outcome, from, to int64, bound time.Duration) bool {
	return outcome != history.Pending && outcome != history.Cancelled || to-from > int64(bound)
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
