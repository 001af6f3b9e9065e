package redlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

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
//   - If the lock is fenced, a token for the next holder is left among the spare tokens (see fenced.go).
//   - It is not over, its Locker is not being closed, and does not know that its configuration is out of date.
//
// Some waiters of this process may get the lock passed on. These waiters ask no master until the window ends or the
// lock can't be passed on. The key of their own process would refuse them, and a waiter with a request under way
// can't be passed the lock (waitqueue.Queue.LeaveQuietly).
//
// The released lock is over before the next holder's lock is returned: Err and Done say so and its contexts are
// cancelled. The lease goes to the next holder. So stragglers of the acquisition and everything after it keep their
// order (see order.go), and the last holder releases the lease. If a majority has lost the key, the last holder's
// release or an extension notices it. Passing the lock on does not.

// maxWindow bounds how long a Locker passes a lock on before other Lockers have their turn.
const maxWindow = 100 * time.Millisecond

// windowShare: the window is the ttl divided by windowShare.
const windowShare = 10

// breathShare: after the window, the process leaves the key alone for the window divided by breathShare.
const breathShare = 20

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

// beingPassed ends a wait's attempts: the waiter is being passed a lock. passedLate ends the attempts of a waiter
// that was passed a lock and found it over: the wait goes on.
var (
	beingPassed = &failure{kind: failPassed, err: errors.New("redlock: passed")}
	passedLate  = &failure{
		kind: failPassedLate, err: fmt.Errorf("%w: this process stood still while it was passed on", ErrExpired),
	}
)

// passingWindow returns the time in which a lock may be passed on while others wait behind it.
func (s *spec) passingWindow() time.Duration {
	if !s.passable() {
		return 0
	}
	return min(s.ttl/windowShare, maxWindow)
}

// passable reports that a lock with these options may be passed on. That is false if the key has to stay for a while
// after its release, or if the key identifies its holder: with Published, and in a term of an election.
func (s *spec) passable() bool {
	return s.kind == single.Plain && len(s.keys) == 1 && !s.publishes && !s.elects && s.minHold == 0
}

// leaveQuietly takes the wait that has got the lock out of the queue. While the lock may be passed on, the waiters
// behind it do not try. They enter the masters' queues once the lock can't be passed on any more. An extension, or a
// check that finds the lock lost, may come between the first look and the queue. Then its message to the queue came
// too early. So leaveQuietly checks again whether the lock may be passed on.
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

// notPassed tells the waiters behind the lock that it will not be passed on, although its window lasts.
func (k *Lock) notPassed() {
	if k.locker.clock.Now() < k.passing.ends {
		k.locker.queue.Remind(k.spec.keys[0], k.passing.ends)
	}
}

// pass passes the lock on to the first waiting goroutine for which it fits, and reports whether it did.
func (e *leaving) pass() bool {
	k, l := e.lock, e.lock.locker
	waiter, entry := l.queue.Take(k.spec.keys[0], e.now, func(waiter any) bool {
		return k.fits(waiter.(*waiting).spec, e.now)
	})
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

// fits reports that the hold suits the acquisition s. It has the same options, its bound leaves s the full validity
// except for at most a window, and the holder gets a part of it. The bound must not exceed that validity: if the
// process died, the key would stay for longer than s asked for.
func (k *Lock) fits(s *spec, now time.Duration) bool {
	bound, whole := k.passing.bound, validUntil(now, s.ttl, k.locker.opts.DriftFactor)
	return s.passable() && s.fenced == k.spec.fenced && whole-s.passingWindow() <= bound && bound <= whole &&
		now+s.grace < bound
}

// successorLocked makes the lock that takes over k's keys on the masters. It returns nil if Close has abandoned k.
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
	if !l.holds.Replace(&k.entry, &next.entry, next) {
		return nil // Close has given k up
	}
	k.present, k.queued = next, true
	next.renewal.plan(s, now, s.ttl)
	next.scheduleLocked()
	return next
}

// takeOver returns the lock that w was passed or, if there is none, the result of w's attempts.
func (w *waiting) takeOver(k *Lock, f *failure) (*Lock, *failure) {
	if f == nil { // its attempt was under way, and so it was not taken
		return k, nil
	}
	for {
		switch taken, passed := w.locker.queue.Taken(&w.entry); {
		case !taken:
			return k, f
		case passed && w.passed == nil:
			return nil, failed(ErrClosed)
		case passed:
			switch w.passed.why() {
			case hold.NotOver:
				return w.passed, nil
			case hold.ShutDown:
				return nil, failed(ErrClosed)
			default: // it ended while this goroutine was not run
				return nil, passedLate
			}
		}
		<-w.locker.queue.Woken(&w.entry) // at once: whoever has taken it is about to pass it
	}
}
