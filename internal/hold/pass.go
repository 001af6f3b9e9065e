package hold

import "time"

// This file passes a lock on inside the process. If another goroutine of the same Locker waits for the key of a
// released lock, it takes over the keys on the masters, without a request to any master. NUMA cohort locks do the
// same with the cores of a node (Dice, Marathe and Shavit, "Lock Cohorting", 2012). For the masters, the Locker has
// the key all the time.
//
// A lock is passed on if nothing about it is in doubt, by this rule:
//
//   - The next holder's validity ends with the validity of the acquisition from the masters. So the known limits on
//     how long a process can have a key do not change. These are the limit that a restart guard covers, and the time
//     that an exchange of masters or an operator has to wait.
//   - The next holder must lose little validity by this. So a lock is passed on only within a window of a tenth of
//     the ttl, since that acquisition began. Then the key is released, and the first waiter in the masters' queues
//     gets it: a Locker keeps others out no longer than one hold and one window.
//   - The lock was never extended. Otherwise an extension or a repair leaves state about masters that have lost the
//     key, and this state stays with the lock that saw it. Nor has [Lock.Verify] found that masters have lost it. A
//     renewal begins when the window has long been over.
//   - The next holder asks for about the same ttl: if its process dies, the key must not stay for longer than it
//     asked for.
//   - If the lock is fenced, a token for the next holder is left among the spare tokens (see fence.go).
//   - It is not over, its Locker is not being closed, and does not know that its configuration is out of date.
//
// Some waiters of this process may get the lock passed on. These waiters ask no master until the window ends or the
// lock can't be passed on. The key of their own process would refuse them, and a waiter with a request under way
// can't be passed the lock (waitqueue.Queue.LeaveQuietly).
//
// The released lock is over before the next holder's lock is returned: Err and Done say so and its contexts are
// cancelled. The lease goes to the next holder. So stragglers of the acquisition and everything after it keep their
// order (see send.go), and the last holder releases the lease. If a majority has lost the key, the last holder's
// release or an extension notices it. Passing the lock on does not.

// maxWindow bounds how long a Locker passes a lock on before other Lockers have their turn.
const maxWindow = 100 * time.Millisecond

// windowShare: the window is the ttl divided by windowShare.
const windowShare = 10

// The first renewal begins after the window, also of a lock that was passed on: its ttl is shorter than the first
// lock's by one window at most.
const _ uint = windowShare - renewShare - 1

// passing is the state that decides how the holds of a lease may follow each other. The lease's mutex guards it,
// except for window, which does not change once the acquisition is sent.
type passing struct {
	window time.Duration // for how long from the acquisition's start; 0: not at all
	ends   time.Duration // when that is over
	bound  time.Duration // until when the masters are sure to keep the key
	// lastToken is the greatest token that a fenced lock and its successors can have.
	lastToken uint64
	doubt     bool // a check has found that they may not have it
	reminds   bool // those who wait are going to be reminded when the window is over
}

// MayPass reports that the hold may be passed on at all while its window lasts.
func (e *Lease) MayPass() bool { return e.passing.window > 0 }

// Passable returns until when the hold may be passed on, if that may be now; 0 if not.
func (h *Hold) Passable(now time.Duration) (until time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.Over() || !h.passableLocked(now) {
		return 0
	}
	return h.passing.ends
}

// Remind notes that those who wait are going to be reminded when the window is over. It reports whether that is new.
func (e *Lease) Remind() (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first, e.passing.reminds = !e.passing.reminds, true
	return first
}

// Offer is a hold that is about to leave its keys, and may be passed on instead.
type Offer struct {
	Now   time.Duration
	Taken any // for the host, between Offer and Passed
	hold  *Hold
}

// Key returns the key of the hold.
func (o *Offer) Key() string { return o.hold.terms.Keys[0] }

// To passes the keys on to next, the hold of an acquisition on these terms, which fit. It reports false if Close has
// given the hold up; then there is no next hold.
func (o *Offer) To(next *Hold, handle Handle, t *Terms) bool {
	h := o.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Pass()
	if h.leaving != nil {
		close(h.leaving)
		h.leaving = nil // the successor is going to leave, too
	}
	next.env, next.handle, next.terms, next.Lease = h.env, handle, t, h.Lease
	return o.succeedLocked(next)
}

// passableLocked reports that nothing about the hold is in doubt, and that its window lasts.
func (h *Hold) passableLocked(now time.Duration) bool {
	p := &h.passing
	return now < p.ends && !p.doubt && h.extending.latest == nil && (!h.terms.Fenced || h.token < p.lastToken)
}

// Fits reports that the hold suits an acquisition on these terms. It has the same options, its bound leaves t the full
// validity except for at most a window, and the holder gets a part of it. The bound must not exceed that validity: if
// the process died, the key would stay for longer than t asked for.
func (o *Offer) Fits(t *Terms) bool {
	h := o.hold
	bound, whole := h.passing.bound, h.env.ValidUntil(o.Now, t.TTL)
	return t.Passable() && t.Fenced == h.terms.Fenced && whole-t.Window() <= bound && bound <= whole &&
		o.Now+t.Grace < bound
}

// succeedLocked makes next the hold that has the keys on the masters. It reports false if Close has given the former
// one up.
func (o *Offer) succeedLocked(next *Hold) bool {
	h, t, now := o.hold, next.terms, o.Now
	next.span.since, next.span.until = now, h.passing.bound
	if t.Fenced {
		next.token = h.token + 1
	}
	if t.MaxHold > 0 {
		next.span.atMost = h.env.Later(now, t.MaxHold)
		next.span.until = min(next.span.until, next.span.atMost)
	}
	next.state.Acquire()
	if !h.env.Registry.Replace(&h.entry, &next.entry, next) {
		return false // Close has given h up
	}
	h.present, h.queued = next, true
	next.renewal.plan(t, now, t.TTL)
	(*attended)(next).scheduleLocked()
	return true
}
