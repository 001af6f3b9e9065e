package hold

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// Repair sets the key of a held lock again on masters that have lost it. Such a master restarted, or refused the
// acquisition because of another owner's leftover that is gone now. Without repair, the next failure would meet a
// lock on a bare majority. But a key that was set again says nothing about the time before, and must not count as a
// key that was always there. Hence two rules, each with the failure that it prevents:
//
//   - Nothing is set again before an extension has been won by masters that had the key. Otherwise: three of five
//     masters have lost the key. One gets it back by an extension that fails, because the other two do not answer.
//     The next extension finds the key on a quorum, and wins, although the lock was free in between and another owner
//     may have had it. So only the newest extension repairs: a late vote of an earlier one, which was won, knows
//     nothing of what the newest has found.
//   - A master that did not confirm its repair does not count until an extension has been won without that master. The
//     time at which the master set the key is unknown, and it may not have set the key at all. A stopped master may
//     set it a minute later, and by then two others may have lost their keys. That a later repair was not done says
//     nothing about the earlier one.
//
// A repair is part of the order of the hold's operations on its master (see send.go), so a release undoes it.

// repair is a call that sets a held key again on one master.
type repair struct {
	lane.Call
	request single.Request
	hold    *Hold
}

// gone reports that the key was absent and that no other owner had it.
func gone(c *lane.Call) bool {
	return c.Err == nil && c.Reply.Outcome == single.Refused && c.Reply.TTL == 0 && c.Reply.Holder == ""
}

// continuityUnknown reports that c, which has ended, granted an extension of a key, or a key handed over, that may not
// have been there all the time.
func (r *round) continuityUnknown(c *lane.Call) bool {
	return (r.request.Op == single.Extend || r.request.Op == single.Transfer) && c.Reply.Outcome == single.Granted &&
		r.hold.states[c.Index].continuityUnknown
}

// repairsLocked follows a vote of an extension that is won. It prepares the repairs, which are sent after the mutex
// has been unlocked. It trusts masters again that were repaired and have the key.
func (r *round) repairsLocked() (repairs []*repair) {
	h := r.hold
	if r != h.extending.newest || r.verdict != Won || h.state.Over() || h.env.Now() >= h.span.until {
		return nil
	}
	for i := range r.ballots {
		s, b := &h.states[i], &r.ballots[i]
		if b.ended && b.Err == nil && b.Reply.Outcome == single.Granted {
			s.continuityUnknown = false
		}
		if s.gone && s.last == nil { // an operation that has been sent since then finds out for itself
			repairs = append(repairs, newRepairLocked(h, i, r.repairTTLLocked()))
		}
	}
	return repairs
}

// repairTTLLocked returns the ttl of a repair: as long as the hold counts on the key, by the fastest of clocks. That
// is longer than the ttl of the round if a shorter extension has not moved the bound.
func (r *round) repairTTLLocked() time.Duration {
	h := r.hold
	return max(r.request.TTL, min(h.env.Outlives(h.span.until-h.env.Now()), h.longest))
}

// newRepairLocked prepares a repair of master i.
func newRepairLocked(h *Hold, i int, ttl time.Duration) *repair {
	p := &repair{hold: h, request: h.request(single.Request{Op: single.Extend, TTL: ttl, Repair: true})}
	p.Call = lane.Call{
		Call: single.Call{Request: &p.request}, Index: i, To: p, Deadline: time.Now().Add(h.terms.Timeout),
		Timeout: h.terms.Timeout,
	}
	s := &h.states[i]
	s.last, s.gone, s.continuityUnknown = &p.Call, false, true
	s.trace.Setting()
	return p
}

// Ended implements [lane.Receiver].
func (p *repair) Ended(c *lane.Call) {
	h := p.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Err == nil && c.Reply.Outcome != single.Refused {
		h.states[c.Index].continuityUnknown = false // from now on the key is there
	}
	h.settleLocked(c)
}
