package redlock

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/surplus"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// Release removes the key from all masters, and returns nil when a quorum has confirmed. That takes one round trip.
// Masters that have not confirmed by then are asked again in the background until they confirm or the key's ttl is
// over. If another goroutine of the Locker waits for the key, Release may pass the lock on to it instead,
// and returns nil at once. Release ignores the cancellation of ctx, so that it leaves no key
// behind. It takes no longer than the request timeout.
//
// After Release the lock is over, also after an error, except [ErrInvalid] for a nil context. Do not retry: a second
// Release returns the same result. The errors:
//
//   - [ErrNotHeld]: the lock was over before, or a majority of masters did not have it any more. The work under it
//     may have overlapped with another holder. Its key is gone from the masters, or soon will be.
//   - [ErrNoQuorum]: the lock protected the work, and its key may still keep others out. The Locker asks masters that
//     have not confirmed again every 200 ms, with about 8,192 pending releases each at most. Without an answer the
//     key lapses there, no later than the ttl of the last acquisition or extension. (On a master that was stopped
//     with an unread acquisition, the ttl starts when it goes on.) If the process ends before that, the key lapses by
//     its ttl. [Locker.Close] waits until no key is left, or lists the remaining keys.
//   - [ErrClosed], together with ErrNotHeld: Close ended the lock; its key lapses by its ttl.
func (k *Lock) Release(ctx context.Context) error {
	if k.isNone() {
		return ErrNotHeld
	}
	if ctx == nil {
		return invalid("nil context")
	}
	_ = k.Err() // notices a validity that is over
	if k.spec.minHold > 0 && surplus.Is(ctx) {
		k.mu.Lock()
		k.unused = true
		k.mu.Unlock()
	}
	w := k.locker.newRoundWait()
	if r, undecided := k.finish(hold.Released, w); undecided {
		_ = w.wait(context.Background(), k.spec.timeout, r) // ends with the timeout at the latest
	}
	k.locker.recycle(w)
	return k.released()
}

// released returns the error for the caller of Release.
func (k *Lock) released() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.ending
	switch {
	case k.state.Why == hold.Passed:
		return nil
	case k.state.Why != hold.Released:
		return k.over
	case r.verdict == won:
		return nil
	case k.unconfirmed == nil: // kept, because answers that come later would change it
		k.unconfirmed = r.failureLocked(ErrNoQuorum)
		if r.verdict == denied {
			k.unconfirmed.Reason = ErrNotHeld
		}
	}
	return k.unconfirmed
}

// lost reports of a lock that was released that it was over before that.
func (k *Lock) lost() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.Why != hold.Passed && (k.state.Why != hold.Released || k.ending.verdict == denied)
}

// finish ends the hold, for the first reason given. Then it passes the lock on or begins to release it everywhere,
// unless that has begun. It returns the release, nil if there is none, and whether the observer will receive its
// decision. The observer may be nil.
func (k *Lock) finish(why hold.Why, observer decisionObserver) (r *round, undecided bool) {
	var after effects
	k.mu.Lock()
	if !k.state.Over() {
		k.overLocked(why, nil, &after)
	}
	if k.state.Phase == hold.Grace {
		k.releaseLocked(observer, &after)
		k.mu.Unlock()
		after.run()
		return k.ending, k.ending != nil && observer != nil // this goroutine has set it
	}
	defer k.mu.Unlock()
	for k.state.Phase == hold.Leaving { // another goroutine is about to send the release
		if k.leaving == nil {
			k.leaving = make(chan struct{})
		}
		over := k.leaving
		k.mu.Unlock()
		<-over
		k.mu.Lock()
	}
	return k.ending, k.ending != nil && observer != nil && k.ending.addObserverLocked(observer)
}

// overLocked marks the hold as over: Err says so, Done is closed, contexts are about to be cancelled. The keys on the
// masters are not released by that. reason is nil where why says everything.
func (k *Lock) overLocked(why hold.Why, reason error, after *effects) {
	if reason == nil {
		reason = overErrors[why]
	}
	k.state.End(why)
	k.over = reason
	k.locker.schedule.Remove(&k.attention)
	if k.done != nil {
		close(k.done)
	}
	after.reason, after.contexts = reason, k.contexts.live
	k.contexts.live = nil
	if k.state.Held && why.Surprises() {
		k.locker.observer.tell(k.locker, k.spec,
			Event{Kind: EventLost, Err: reason, Held: true, HeldFor: k.locker.clock.Now() - k.since})
	}
}

// releaseLocked begins to release a hold that is over on every master. A failed attempt is released at once: it
// reserves nothing, and keeps its position in the queue. A hold that was held asks the waiters of this Locker first,
// without the mutex.
func (k *Lock) releaseLocked(observer decisionObserver, after *effects) {
	k.locker.schedule.Remove(&k.attention)
	after.leaving.observer = observer
	if !k.state.Held {
		after.leaving.sendLocked(k, after)
		return
	}
	k.state.Leave()
	after.leaving.lock = k
	if k.state.Why == hold.Released && k.passing.window > 0 {
		after.leaving.now = k.locker.clock.Now()
		after.leaving.passable = k.passableLocked(after.leaving.now)
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
	lock      *Lock
	observer  decisionObserver // of the release
	passable  bool             // it may be passed on, by the time that is now
	now       time.Duration
	taken     *waitqueue.Entry // of whom it was passed on to
	unclaimed []string         // keys that nobody waits for here
	reserve   time.Duration    // for how long the release keeps the keys for whom it notifies
}

// ask asks the waiters of this Locker. No mutex is held.
func (e *leaving) ask() {
	k, l := e.lock, e.lock.locker
	if e.passable && !l.isClosing() && l.current.State().Newer == nil && e.pass() {
		return
	}
	if k.passing.window > 0 {
		k.giveWay() // before waiters here are notified
	}
	e.reserve = l.reserve()
	e.unclaimed = l.queue.HandOver(k.spec.keys) // for the others the position is inherited by those who wait here
}

// end wakes the waiter that got the lock, or sends the release. No mutex is held.
func (e *leaving) end() {
	k := e.lock
	if e.taken != nil {
		k.locker.observePass(k, k.locker.clock.Now()-k.since)
		k.locker.queue.Pass(e.taken)
		return
	}
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	e.sendLocked(k, &after)
}

// sendLocked sends the release.
func (e *leaving) sendLocked(k *Lock, after *effects) {
	request := k.request(single.Request{Op: single.Release, TTL: k.longest, Keep: k.keepLocked(), Reserve: e.reserve})
	if request.Keep > 0 {
		request.KeepAs = owner.NewKept(k.locker.opts.Identity)
	}
	allUnclaimed := len(e.unclaimed) == len(k.spec.keys)
	if allUnclaimed {
		request.Waiter = k.waiterID
	}
	k.state.Release(len(k.states))
	k.ending = k.newRoundLocked(request, e.observer)
	k.issueLocked(k.ending, after)
	if len(e.unclaimed) > 0 && !allUnclaimed && k.waiterID != "" {
		after.leave(k, e.unclaimed, everyMaster)
	}
	if k.leaving != nil {
		close(k.leaving)
	}
}

// giveWay makes the waiters of this process leave the key to the waiter that the next release notifies. The next
// waiter in line gets a reminder to try when the window ends. Without giveWay its request would follow the release at
// once, and have the key for another window. Clients of other libraries are in no queue, and find a free key only
// when they ask: for such clients the key stays free for a moment after each window.
func (k *Lock) giveWay() {
	now := k.locker.clock.Now()
	ahead := now
	if now >= k.passing.ends {
		ahead += k.passing.window / breathShare
	}
	k.locker.queue.Rival(k.spec.keys, ahead, max(ahead, now+k.locker.giveWay()))
}

// keepLocked returns the time for which a release leaves the keys, by the fastest of clocks; 0: it removes the keys.
func (k *Lock) keepLocked() time.Duration {
	if k.spec.minHold == 0 || !k.state.Held || k.unused || !k.state.Why.Keeps() {
		return 0
	}
	left := later(k.since, k.spec.minHold) - k.locker.clock.Now()
	if left <= 0 {
		return 0
	}
	return left + driftAllowance(left, k.locker.opts.DriftFactor)
}

// abandon ends the hold without asking the masters, when the Locker is shut down: its keys lapse. It reports false if
// that has been done before.
func (k *Lock) abandon() bool {
	var after effects
	defer after.run()
	k.mu.Lock()
	if !k.state.Over() {
		k.overLocked(hold.ShutDown, nil, &after)
	}
	k.mu.Unlock()
	return k.locker.holds.Leave(&k.entry)
}

// newJanitor makes the janitor, which repeats releases to masters that have not confirmed.
func newJanitor(l *Locker) *janitor.Janitor {
	c := janitor.Config{
		Masters: len(l.lanes),
		Now:     l.clock.Now,
		After:   l.after,
		Send:    func(c *lane.Call) { l.lanes[c.Index].Send(c) },
		Down:    func(i int) bool { return l.lanes[i].Down() },
		Timeout: l.opts.requestTimeout,
		Lapsed: func(now, ttl time.Duration) time.Duration {
			return lapsed(now, ttl, l.opts.DriftFactor)
		},
		Left:   func(c *lane.Call) { l.dequeued(c.Request.Keys, c.Reply.Called) },
		Waiter: l.id, Unclaimed: l.queue.Unclaimed,
	}
	if l.observer != nil {
		c.Observe = l.observePending
	}
	return janitor.New(c)
}

const (
	// minReserve and maxReserve bound how long a release reserves the key for the waiter it notifies. That is about
	// the time until the notification arrives and the acquisition comes back.
	minReserve = 5 * time.Millisecond
	maxReserve = 500 * time.Millisecond
)

// reserve returns the time for which a release keeps the key for the waiter it notifies.
func (l *Locker) reserve() time.Duration {
	return min(minReserve+3*l.slowest(), maxReserve)
}

// giveWay returns the time for which this Locker leaves the masters to a waiter that a release has notified. The
// notification and the waiter's acquisition take about two round trips.
func (l *Locker) giveWay() time.Duration { return time.Millisecond + 2*l.slowest() }

// slowest returns the distance of the slowest master.
func (l *Locker) slowest() time.Duration {
	var slowest time.Duration
	for _, lane := range l.lanes {
		slowest = max(slowest, lane.RTT())
	}
	return slowest
}
