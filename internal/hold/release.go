package hold

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// Release ends the hold, and passes it on or removes its keys from all masters. It returns when a quorum has confirmed,
// or the request timeout is over. unused says that the lock was not needed, so its keys need not be kept.
func (h *Hold) Release(unused bool) {
	_ = h.Err() // notices a validity that is over
	if unused {
		h.mu.Lock()
		h.unused = true
		h.mu.Unlock()
	}
	w := h.env.newRoundWait()
	if r, undecided := h.finish(Released, w); undecided {
		w.wait(context.Background(), h.terms.Timeout, r) // ends with the timeout at the latest
	}
	h.env.recycle(w)
}

// Abandon releases everywhere what a failed acquisition may have got.
func (h *Hold) Abandon() { h.finish(Abandoned, nil) }

// Outcome returns why the hold is over. lost is the release, as far as it is known, if it was not won.
func (h *Hold) Outcome() (why Why, lost *Result, over error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.Why == Released && h.ending.verdict != Won {
		lost = h.ending.resultLocked()
	}
	return h.state.Why, lost, h.over
}

// finish ends the hold, for the first reason given. Then it passes the lock on or begins to release it everywhere,
// unless that has begun. It returns the release, nil if there is none, and whether the observer will receive its
// decision. The observer may be nil.
func (h *Hold) finish(why Why, observer decisionObserver) (r *round, undecided bool) {
	var after effects
	h.mu.Lock()
	if !h.state.Over() {
		h.overLocked(why, nil, &after)
	}
	if h.state.Phase == Grace {
		h.releaseLocked(observer, &after)
		h.mu.Unlock()
		after.run()
		return h.ending, h.ending != nil && observer != nil // this goroutine has set it
	}
	defer h.mu.Unlock()
	for h.state.Phase == Leaving { // another goroutine is about to send the release
		if h.leaving == nil {
			h.leaving = make(chan struct{})
		}
		over := h.leaving
		h.mu.Unlock()
		<-over
		h.mu.Lock()
	}
	return h.ending, h.ending != nil && observer != nil && h.ending.addObserverLocked(observer)
}

// overLocked marks the hold as over: Err says so, Done is closed, contexts are about to be cancelled. The keys on the
// masters are not released by that. lost is the extension that found the hold lost.
func (h *Hold) overLocked(why Why, lost *Result, after *effects) {
	h.state.End(why)
	h.over = h.handle.Reason(why, lost)
	h.env.Schedule.Remove(&h.attention)
	if h.done != nil {
		close(h.done)
	}
	after.over, after.reason = h.handle, h.over
	if watch := h.env.Watch; watch != nil && h.state.Held && why.Surprises() {
		watch.Lost(h, h.over, h.env.Now()-h.span.since)
	}
}

// releaseLocked begins to release a hold that is over on every master. A failed attempt is released at once: it
// reserves nothing, and keeps its position in the queue. A hold that was held asks the waiters of this Locker first,
// without the mutex.
func (h *Hold) releaseLocked(observer decisionObserver, after *effects) {
	h.env.Schedule.Remove(&h.attention)
	after.leaving.observer = observer
	if !h.state.Held {
		after.leaving.sendLocked(h, after)
		return
	}
	h.state.Leave()
	after.leaving.hold = h
	if h.state.Why == Released && h.passing.window > 0 {
		after.leaving.now = h.env.Now()
		after.leaving.passable = h.passableLocked(after.leaving.now)
	}
}

// leaving passes on or releases the keys of a hold that is over. While a hold leaves, its mutex is free, and this can
// happen:
//
//   - Another goroutine calls Release. It waits until the first one has passed the lock on, or has a release to wait
//     for.
//   - Validity ends, or an extension that is under way is denied. The phase is Leaving, so nothing happens.
//   - Close gives the hold up. Then the hold has no successor, and the waiter that was taken for it gets ErrClosed.
//   - Goroutines begin to wait for the key, or stop waiting. Only the queue decides: a waiter in the queue gets the
//     lock or is woken, and a later waiter asks the masters behind the release.
type leaving struct {
	hold      *Hold
	observer  decisionObserver // of the release
	passable  bool             // it may be passed on, by the time that is now
	now       time.Duration
	offer     *Offer        // by which it was passed on
	unclaimed []string      // keys that nobody waits for here
	reserve   time.Duration // for how long the release keeps the keys for whom it notifies
}

// ask asks the waiters of this Locker. No mutex is held.
func (e *leaving) ask() {
	h := e.hold
	if e.passable {
		if e.offer = (&Offer{Now: e.now, hold: h}); h.env.Offer(e.offer) {
			return
		}
		e.offer = nil
	}
	e.unclaimed, e.reserve = h.env.Leaving(Exit{h.terms.Keys, h.passing.window, h.passing.ends})
}

// Exit is a hold that was held and leaves its keys.
type Exit struct {
	Keys   []string
	Window time.Duration // for how long after its acquisition it could be passed on
	Ends   time.Duration // when that is over
}

// end wakes the waiter that got the lock, or sends the release. No mutex is held.
func (e *leaving) end() {
	h := e.hold
	if e.offer != nil {
		if h.env.Watch != nil {
			h.env.PassedOn(h, h.env.Now()-h.span.since)
		}
		h.env.Passed(e.offer)
		return
	}
	var after effects
	defer after.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	e.sendLocked(h, &after)
}

// sendLocked sends the release.
func (e *leaving) sendLocked(h *Hold, after *effects) {
	request := h.request(single.Request{Op: single.Release, TTL: h.longest, Keep: keepLocked(h), Reserve: e.reserve})
	if request.Keep > 0 {
		request.KeepAs = owner.NewKept(h.env.Identity)
	}
	allUnclaimed := len(e.unclaimed) == len(h.terms.Keys)
	if allUnclaimed {
		request.Waiter = h.waiterID
	}
	h.state.Release(len(h.states))
	h.ending = newRoundLocked(h, request, e.observer)
	h.ending.issueLocked(after)
	if len(e.unclaimed) > 0 && !allUnclaimed && h.waiterID != "" {
		after.leave(h, e.unclaimed, EveryMaster)
	}
	if h.leaving != nil {
		close(h.leaving)
	}
}

// keepLocked returns the time for which the release of h leaves the keys, by the fastest of clocks; 0: it removes the
// keys.
func keepLocked(h *Hold) time.Duration {
	if h.terms.MinHold == 0 || !h.state.Held || h.unused || !h.state.Why.Keeps() {
		return 0
	}
	left := h.env.Later(h.span.since, h.terms.MinHold) - h.env.Now()
	if left <= 0 {
		return 0
	}
	return left + h.env.Allowance(left)
}

// ShutDown ends the hold without asking the masters, when the Locker is shut down: its keys lapse. It reports false if
// that has been done before.
func (h *Hold) ShutDown() bool {
	var after effects
	defer after.run()
	h.mu.Lock()
	if !h.state.Over() {
		h.overLocked(ShutDown, nil, &after)
	}
	h.mu.Unlock()
	return h.env.Registry.Leave(&h.entry)
}

// Gone is a release that was decided, of a hold that was held.
type Gone struct {
	Keys     []string
	Kept     bool // the keys stay for a while
	Notified bool // a master has notified a waiter
	Left     bool // the release took the Locker out of the queues of the keys
}

// freed tells the Locker of a release that was decided. The release of a failed attempt frees no key that a waiter
// needs.
func (r *round) freed() {
	h := r.hold
	h.mu.Lock()
	held, g := h.state.Held, Gone{Keys: r.request.Keys, Kept: r.request.Keep > 0, Left: r.request.Waiter != ""}
	for i := range r.ballots {
		b := &r.ballots[i]
		g.Notified = g.Notified || b.ended && b.Reply.Called
	}
	h.mu.Unlock()
	if held {
		h.env.Gone(g)
	}
}
