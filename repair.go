package redlock

import (
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file sets the key of a held lock again on masters that have lost it: they restarted, or refused the acquisition
// for a leftover of somebody else's that is gone now. Without that the next failure would find a lock that hangs by a
// thread. But a key that was set again says nothing about the time before, and must not pass for one that was always
// there. Hence two rules, and what they prevent:
//
//   - Nothing is set again before an extension has been won by masters that had the key. Three of five have lost it;
//     one gets it back by an extension that fails, because the other two do not answer; the next extension finds a
//     quorum that has it, and wins, although the lock was free in between and somebody may have had it.
//   - A master that did not answer to its repair does not count until an extension has been won without it. Nobody knows
//     when the key was set there, if it was: a minute later, if the master was stopped, and then two others may have lost
//     theirs before that.
//
// A repair has its place in the order of the hold's operations on its master (see hold.go), so a release undoes it.

// repair is a call that sets a held key again on one master.
type repair struct {
	single.Call
	request single.Request
	lock    *Lock
}

// errDoubtful is why a granted extension did not count.
var errDoubtful = errors.New("the key was set again, and it is not known when")

// gone reports that the key was not there, and nobody else's either.
func gone(c *single.Call) bool {
	return c.Err == nil && c.Reply.Outcome == single.Refused && c.Reply.TTL == 0 && c.Reply.Holder == ""
}

// doubts reports that c, which has ended, granted an extension of a key of which it is not known since when it is there.
func (r *round) doubts(c *single.Call) bool {
	return r.request.Op == single.Extend && c.Reply.Outcome == single.Granted && r.lock.slots[c.Index].doubtful
}

// mend follows a vote of an extension that is won: it prepares what there is to repair, which the caller sends when it
// has given the mutex up, and trusts the repaired masters that have been seen to have the key.
func (k *Lock) mend(r *round) (repairs []*repair) {
	if !r.mends || r.verdict != won || k.over != nil || k.locker.clock.Now() >= k.until {
		return nil
	}
	for i := range r.ballots {
		s, b := &k.slots[i], &r.ballots[i]
		if b.ended && b.Err == nil && b.Reply.Outcome == single.Granted {
			s.doubtful = false
		}
		if s.gone && s.last == nil { // an operation that has been sent since then finds out for itself
			repairs = append(repairs, k.newRepair(i, r.request.TTL))
		}
	}
	return repairs
}

// newRepair prepares a repair; the caller holds the mutex.
func (k *Lock) newRepair(i int, ttl time.Duration) *repair {
	p := &repair{lock: k, request: k.request(single.Request{Op: single.Extend, TTL: ttl, Repair: true})}
	p.Call = single.Call{Request: &p.request, Index: i, To: p, Deadline: time.Now().Add(k.spec.timeout)}
	s := &k.slots[i]
	s.last, s.gone, s.doubtful = &p.Call, false, true
	return p
}

// Ended implements [single.Receiver].
func (p *repair) Ended(c *single.Call) {
	k := p.lock
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.Err == nil || !c.Sent {
		k.slots[c.Index].doubtful = false // what the next extension finds was there from now on, or never
	}
	k.settle(c)
}
