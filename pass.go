package redlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// This file passes a lock on inside the process: where another goroutine of the same Locker waits for the key of a lock that is
// released, it gets what the masters have, without a message to any of them. It is what NUMA cohort locks do with the cores of a
// node (Dice, Marathe and Shavit, "Lock Cohorting", 2012): to the masters the Locker has the key all the time.
//
// A lock is passed on if nothing about it is in doubt, by this rule:
//
//   - The next holder's validity ends where that of the acquisition from the masters does. Nothing that is known of how long a process can
//     have a key changes: not what a restart guard covers, nor how long an exchange of masters or an operator has to wait.
//   - So that this costs it little, a lock is passed on only within a window, a tenth of the ttl, since that acquisition began. Then
//     the key is released, and whoever is first in line on the masters gets it: a Locker keeps others out no longer than one hold and one window.
//   - Nobody has extended it: what an extension or a repair leaves behind, on masters that have lost the key, stays with the lock that
//     saw it. Nor has [Lock.Verify] found that masters have lost it. A renewal begins when the window has long been over.
//   - The next holder asks for about as long: its process must not have the key for longer than it asked for if it dies.
//   - If it is fenced, there is a token for the next holder among those that it got with its own (see fenced.go).
//   - It is not over, its Locker is not being closed, and does not know that its configuration is out of date.
//
// Until the window ends or the lock can't be passed on, those who wait for the key here, and may be passed it, ask no master for it: they
// would be refused by their own process's key, and could not be passed the lock while the request is under way
// (waitqueue.Queue.LeaveQuietly).
//
// The lock that was released is over before the next holder's is returned: Err and Done say so and its contexts are cancelled.
// The lease goes over, so stragglers of the acquisition and everything after them keep their order (see order.go): whoever
// is the last to have it releases it. That a majority has lost the key is noticed by that one, or by an extension, and not by those who
// pass it on.

// maxWindow bounds the time for which a Locker passes a lock on before it lets others have it.
const maxWindow = 100 * time.Millisecond

// windowShare is which part of the ttl the window is.
const windowShare = 10

// breathShare is which part of a window the key is left alone for by its process when the window is over.
const breathShare = 20

// The first renewal begins after the window, of a lock that was passed on, too: its ttl is shorter than the first one's by a window at the most.
const _ uint = windowShare - renewShare - 1

// passing is what is known of how the holds of a lease may follow each other. The lease's mutex guards it, except for window, which does not
// change once the acquisition is sent.
type passing struct {
	window time.Duration // for how long from the acquisition's start; 0: not at all
	ends   time.Duration // when that is over
	bound  time.Duration // until when the masters are sure to keep the key
	// lastToken is the greatest of the tokens that a fenced lock and those behind it can have.
	lastToken uint64
	doubt     bool // a check has found that they may not have it
	reminds   bool // those who wait are going to be reminded when the window is over
}

// errPassed ends a wait's attempts: it is being passed a lock. errPassedLate ends one that was passed a lock and found it over: the wait goes on.
var (
	errPassed     = errors.New("redlock: passed")
	errPassedLate = fmt.Errorf("%w: this process stood still while it was passed on", ErrExpired)
)

// passingWindow is for how long a lock may be passed on when others wait behind it.
func (s *spec) passingWindow() time.Duration {
	if !s.passable() {
		return 0
	}
	return min(s.ttl/windowShare, maxWindow)
}

// passable reports that such a lock is passed on: not one whose key has to stay for a while after its release, or says whose it is, as a term of
// an election does by its ID.
func (s *spec) passable() bool {
	return s.kind == single.Plain && len(s.keys) == 1 && !s.publishes && !s.elects && s.minHold == 0
}

// tokensPerMillisecond is how many tokens a fenced lock gets for each millisecond in which it may be passed on: a tenth of what the clock moves on
// by which tokens are proposed.
const tokensPerMillisecond = 100

// spareTokens is how many tokens behind its own a fenced lock with this window asks for when it proposes token. Locks that are not passed on make no
// use of theirs; so that counters do not run away from the clock for that, there are none while they are ahead of it.
func (l *Locker) spareTokens(window time.Duration, token uint64) uint64 {
	if token > l.wallToken() {
		return 0
	}
	return uint64(window/time.Millisecond) * tokensPerMillisecond
}

// leaveQuietly takes the wait that has got the lock out of the queue. As long as the lock may be passed on, those behind it do not try. They
// take their place in the masters' queues once it can't be any more. An extension, or a check that finds the lock lost, may come between the
// first look and the queue. It has told the queue in vain then, so whether the lock may be passed on is looked at again.
func (k *Lock) leaveQuietly(e *waitqueue.Entry) (inherited bool) {
	queue, key, until, now := k.locker.queue, k.spec.keys[0], k.passing.ends, k.locker.clock.Now()
	k.mu.Lock()
	if k.state.Over() || !k.passableLocked(now) {
		until = 0
	}
	k.mu.Unlock()
	inherited = queue.LeaveQuietly(e, until)
	if until == 0 {
		return inherited
	}
	k.mu.Lock()
	passable, first := !k.state.Over() && k.passableLocked(now), !k.passing.reminds
	k.passing.reminds = true
	k.mu.Unlock()
	if !passable {
		queue.Remind(key, until)
	}
	if first { // others have the reminder of theirs
		k.locker.clock.AfterFunc(until-now, func() { queue.Remind(key, until) })
	}
	return inherited
}

// notPassed tells those who wait behind the lock that it is not going to be passed on, although its window lasts.
func (k *Lock) notPassed() {
	if k.locker.clock.Now() < k.passing.ends {
		k.locker.queue.Remind(k.spec.keys[0], k.passing.ends)
	}
}

// pass passes the lock on to the first goroutine that waits for it, if there is one that it fits, and reports whether it did.
func (e *leaving) pass() bool {
	k, l := e.lock, e.lock.locker
	waiter, entry := l.queue.Take(k.spec.keys[0], e.now, func(waiter any) bool { return k.fits(waiter.(*waiting).spec, e.now) })
	if entry == nil {
		return false
	}
	w := waiter.(*waiting)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state.Pass()
	if k.leaving != nil {
		close(k.leaving)
		k.leaving = nil // the successor is going to leave, too
	}
	w.passed = k.successorLocked(w.spec, e.now)
	e.taken = entry
	return true
}

// passableLocked reports that nothing about the hold is in doubt, and that its window lasts.
func (k *Lock) passableLocked(now time.Duration) bool {
	p := &k.passing
	return now < p.ends && !p.doubt && k.extending.begun == 0 && (!k.spec.fenced || k.token < p.lastToken)
}

// fits reports that the hold is one that was asked for like this, and that its bound leaves it the validity but for a window, and its
// holder some of it. A bound beyond that validity would leave the key for longer than it asked for if its process died.
func (k *Lock) fits(s *spec, now time.Duration) bool {
	bound, whole := k.passing.bound, validUntil(now, s.ttl, k.locker.opts.DriftFactor)
	return s.passable() && s.fenced == k.spec.fenced && whole-s.passingWindow() <= bound && bound <= whole && now+s.grace < bound
}

// successorLocked makes the lock that goes on with what the masters have of k, nil if Close has given that up.
func (k *Lock) successorLocked(s *spec, now time.Duration) *Lock {
	l := k.locker
	next := &Lock{locker: l, spec: s, lease: k.lease, began: now, since: now, until: k.passing.bound}
	if s.fenced {
		next.token = k.token + 1
	}
	if s.maxHold > 0 {
		next.atMost = later(now, s.maxHold)
		next.until = min(next.until, next.atMost)
	}
	next.state.Acquire()
	if !l.replace(k, next) {
		return nil // Close has given k up
	}
	k.present, k.queued = next, true
	next.renewal.plan(s, now, s.ttl)
	next.scheduleLocked()
	return next
}

// takeOver returns the lock that w was passed instead of what its attempts have ended with.
func (w *waiting) takeOver(k *Lock, err error) (*Lock, error) {
	if err == nil { // its attempt was under way, and so it was not taken
		return k, nil
	}
	for {
		switch taken, passed := w.locker.queue.Taken(&w.entry); {
		case !taken:
			return k, err
		case passed && w.passed == nil:
			return nil, ErrClosed
		case passed && errors.Is(w.passed.Err(), ErrClosed):
			return nil, ErrClosed
		case passed && w.passed.Err() != nil: // while this goroutine was not run
			return nil, errPassedLate
		case passed:
			return w.passed, nil
		}
		<-w.locker.queue.Woken(&w.entry) // at once: whoever has taken it is about to pass it
	}
}
