package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// This file waits for a lock. docs/understand/waiting.md and docs/evidence/interleavings.md say how a waiter behaves
// in each case, and why. The package internal/waitqueue keeps the order among waiters of one Locker.

// waiting is one acquisition that waits if it has to. Only its own goroutine uses it, except for the entry.
type waiting struct {
	locker *Locker
	spec   *spec
	entry  waitqueue.Entry
	latest *Lock // of the latest attempt made in turn
	passed *Lock // what it was passed, if it was

	contend.Progress
	rounds     int      // that were sent
	last       *failure // of the latest attempt; nil before the first
	subscribed bool     // the Locker listens on its account
}

// wait acquires in as many rounds as needed, and returns their number. since is the time when the wait began.
func (l *Locker) wait(ctx context.Context, s *spec, since time.Duration) (k *Lock, rounds int, err error) {
	if s.MaxAttempts == 1 { // there is nothing to wait for
		return l.once(ctx, s)
	}
	progress := contend.Progress{Since: since, Claims: s.Kind == single.Exclusive}
	w := &waiting{locker: l, spec: s, Progress: progress}
	for {
		k, f := w.inQueue(ctx)
		if !f.is(failPassedLate) {
			return k, w.rounds, f.error()
		}
		err = fmt.Errorf("redlock: acquire %s: %w", brief(l.shown(s.Keys[0])), f.err)
		again := &waiting{locker: l, spec: s, Progress: progress, rounds: w.rounds, last: failed(err)}
		again.Attempts = w.Attempts + 1
		switch { // as after a round that came too late
		case ctx.Err() != nil:
			return nil, w.rounds, again.gaveUp(ended(ctx)).err
		case s.MaxAttempts > 0 && again.Attempts >= s.MaxAttempts:
			return nil, w.rounds, err
		}
		w = again
	}
}

// inQueue waits in the queue until the lock is there or the wait ends.
func (w *waiting) inQueue(ctx context.Context) (k *Lock, f *failure) {
	s := w.spec
	w.locker.crowd.Enter(&w.entry, waitqueue.Want{
		Keys: s.Keys, Class: s.class(), Since: w.Since, Alone: s.entered, Seldom: s.Every > contend.NotifiedPause,
		Owner: ownerHash(s.owner), Reads: s.Kind == single.Shared,
		Patient: s.Passable() && s.MaxAttempts == 0 && s.MaxOutage == 0, Waiter: w,
	})
	defer func() { w.leave(ctx, k) }()
	k, f = w.takeOver(w.acquire(ctx))
	return k, f
}

// class groups acquisitions of the same keys by the commands and the timeout that they need. If one class reaches no
// quorum, another class still may.
func (s *spec) class() waitqueue.Class {
	class := uint64(s.TTL/time.Millisecond)<<16 | uint64(len(s.Keys))<<4 | uint64(s.Kind)<<1
	if s.Fenced {
		class |= 1
	}
	return waitqueue.Class(class)
}

// acquire makes attempts until it wins one or the wait ends. An attempt is a round or, behind others in the queue, a
// pause spent there, since the first waiter asks for all waiters. But the last attempt that MaxAttempts allows is a
// round in any case. An acquisition that may enter a lock again does not wait for its turn. It asks as soon as its
// owner is known to have the key, because the waiters before it may be waiting for the very lock that it enters.
func (w *waiting) acquire(ctx context.Context) (*Lock, *failure) {
	for step := (contend.Step{Counts: true}); ; {
		turn, err := w.yield(ctx)
		if err != nil {
			return nil, w.gaveUp(err)
		}
		if f := w.unmended(); f != nil && turn && w.rounds == 0 { // those before it have just found that out
			return nil, f
		}
		final := false
		if step.Counts {
			w.Attempts++
			final = w.Attempts == w.spec.MaxAttempts
		}
		if turn || final || step.Enters {
			k, f := w.attempt(ctx, turn, final)
			switch {
			case f == nil, final && f.q != nil:
				return k, f
			case f.lasts() >= single.Final, f.kind == failOutdated, f.kind == failPassed:
				return nil, f // whatever the round before said
			case f.q == nil:
				return nil, w.gaveUp(f.err)
			}
			if w.refused(f, turn); w.unmended() != nil {
				return nil, f
			}
		} else if w.last == nil {
			w.last = behindOthers
		}
		w.plan(turn, step.Counts)
		w.locker.observeWait(w.spec)
		if step, err = w.pause(ctx); err != nil {
			return nil, w.gaveUp(err)
		}
	}
}

// beingPassed ends a wait's attempts: the waiter is being passed a lock. passedLate ends the attempts of a waiter
// that was passed a lock and found it over: the wait goes on.
var (
	beingPassed = &failure{kind: failPassed, err: errors.New("redlock: passed")}
	passedLate  = &failure{
		kind: failPassedLate, err: fmt.Errorf("%w: this process stood still while it was passed on", ErrExpired),
	}
)

var (
	behindOthers = &failure{
		kind: failHeld, err: fmt.Errorf("%w: others of this process are first in the queue", ErrHeld),
	}
	afterOthers = &failure{kind: failHeld, err: fmt.Errorf("%w: others are let go first", ErrHeld)}
)

// gaveUp is the failure of a wait that err has ended.
func (w *waiting) gaveUp(err error) *failure {
	if w.last == nil {
		return failed(err)
	}
	return failed(&waitError{key: w.locker.shown(w.spec.Keys[0]), ended: err, last: w.last.err})
}

// yield waits a little if this attempt should let others go first, and reports whether it is w's turn.
func (w *waiting) yield(ctx context.Context) (turn bool, err error) {
	l := w.locker
	for {
		switch { // it is woken when the one before it leaves, and both may have been cancelled
		case ctx.Err() == nil:
		case w.last == nil:
			return false, fmt.Errorf("redlock: acquire %s: %w", brief(l.shown(w.spec.Keys[0])), ended(ctx))
		default:
			return false, ended(ctx)
		}
		turn, d := l.crowd.Yield(&w.entry, l.clock.Now)
		if d <= 0 || !turn {
			return turn, nil
		}
		if err := l.sleep(ctx, l.closing, l.crowd.Woken(&w.entry), d); err != nil {
			if w.last == nil {
				w.last = afterOthers
			}
			return false, err
		}
	}
}

// attempt is a round, or a try if it is the last one.
func (w *waiting) attempt(ctx context.Context, turn, final bool) (*Lock, *failure) {
	if final {
		return w.locker.try(ctx, w.spec, func() (*Lock, *failure) { return w.round(ctx, turn) })
	}
	return w.round(ctx, turn)
}

// round sends one round, as this Locker's waiter if it is w's turn.
func (w *waiting) round(ctx context.Context, turn bool) (k *Lock, f *failure) {
	switch {
	case turn:
		k, f = w.locker.attempt(ctx, w.spec, w)
	case w.locker.crowd.Start(&w.entry):
		k, f = w.locker.attempt(ctx, w.spec, nil)
	default:
		f = beingPassed
	}
	if !f.is(failPassed) {
		w.rounds++
	}
	return k, f
}

// refused takes note of a round that was not won.
func (w *waiting) refused(f *failure, turn bool) {
	l := w.locker
	l.crowd.End(&w.entry)
	w.last = f
	w.Unreached = turn && f.kind != failHeld
	w.complained(f)
	if !turn {
		return
	}
	if len(w.spec.Keys) > 1 && f.kind == failHeld {
		if unclaimed := l.crowd.Blocked(&w.entry, l.withPrefix(f.q.blockingKeys()), l.clock.Now()); len(unclaimed) > 0 {
			l.crowd.Depart(&w.spec.Terms, unclaimed, &w.latest.hold, hold.EveryMaster)
		}
	}
	owners, claimed := f.q.holders()
	if l.crowd.Held(&w.entry, owners, claimed) && w.spec.Kind != single.Shared {
		w.Claims = true
	}
	if !w.subscribed {
		w.subscribed = true
		l.crowd.Subscription.Enter()
	}
}

// plan decides when the next attempt is due.
func (w *waiting) plan(turn, counts bool) {
	l := w.locker
	now := l.clock.Now()
	w.Plan(&w.spec.Policy, &contend.After{
		Refusal: w.last.refusal(), Now: now, Took: now - w.tried(), Turn: turn, Counts: counts,
		Subscribed: l.crowd.Subscription.Subscribed(),
	}, l.opts.Jitter)
}

// tried is the time when the latest attempt began.
func (w *waiting) tried() time.Duration {
	if w.latest == nil {
		return w.locker.clock.Now()
	}
	return w.latest.began
}

// pause waits for the next attempt, and returns its kind.
func (w *waiting) pause(ctx context.Context) (contend.Step, error) {
	l, s := w.locker, w.spec
	for {
		v := contend.View{Status: l.crowd.Status(&w.entry), Now: l.clock.Now()}
		v.OutageLeft = l.outageLeft(s.MaxOutage, w.Since, v.Now)
		step := w.Next(&s.Policy, &v)
		switch step.Do {
		case contend.TakeOver:
			return step, beingPassed.err
		case contend.GiveUp:
			return step, fmt.Errorf("%w for %v, the MaxOutage", ErrNoQuorum, s.MaxOutage)
		case contend.Try:
			if step.StepBack {
				w.Unreached = false
				l.crowd.StepBack(&w.entry)
			}
			return step, nil
		case contend.Sleep:
		}
		if err := l.sleep(ctx, l.closing, l.crowd.Woken(&w.entry), step.Until-v.Now); err != nil {
			return step, err
		}
	}
}

// leave ends the wait. k is the lock, or nil after a wait without one. The wait's claim must not keep readers of this
// Locker out either; these readers will enter the queue again.
func (w *waiting) leave(ctx context.Context, k *Lock) {
	l := w.locker
	if k != nil {
		k.leaveQueue(w)
	} else {
		var heirAfter time.Duration
		if ctx.Err() != nil {
			heirAfter = contend.MaxPause / 2
		}
		var latest any
		if w.latest != nil {
			latest = w.latest
		}
		if unclaimed, after := l.crowd.GiveUp(&w.entry, l.clock.Now, latest, heirAfter); len(unclaimed) > 0 {
			var behind *hold.Hold
			if k, ok := after.(*Lock); ok {
				behind = &k.hold
			}
			l.crowd.Depart(&w.spec.Terms, unclaimed, behind, hold.EveryMaster)
		}
	}
	if w.subscribed {
		l.crowd.Subscription.Leave()
	}
}

// leaveQueue ends the wait that has got the lock.
func (k *Lock) leaveQueue(w *waiting) {
	var queued uint64
	if w.latest != nil && w.latest != k { // it was passed the lock
		queued = w.latest.hold.QueuedOn()
	}
	inherited := k.leaveQuietly(&w.entry)
	if inherited {
		queued = hold.EveryMaster
	}
	if queued != 0 {
		k.hold.QueueOn(k.locker.crowd.ID, queued, inherited) // also where it was won out of turn
	}
}

// leaveQuietly takes the wait that has got the lock out of the queue. While the lock may be passed on, the waiters
// behind it do not try. They enter the masters' queues once the lock can't be passed on any more. An extension, or a
// check that finds the lock lost, may come between the first look and the queue. Then its message to the queue came
// too early. So leaveQuietly checks again whether the lock may be passed on.
func (k *Lock) leaveQuietly(e *waitqueue.Entry) (inherited bool) {
	queue, key, now := k.locker.crowd, k.spec.Keys[0], k.locker.clock.Now()
	if !k.hold.MayPass() {
		return queue.Leave(e, k.locker.clock.Now)
	}
	until := k.hold.Passable(now)
	inherited = queue.LeaveQuietly(e, until)
	if until == 0 {
		return inherited
	}
	if k.hold.Passable(now) == 0 {
		queue.Remind(key, until)
	}
	if k.hold.Remind() { // others have the reminder of theirs
		k.locker.clock.AfterFunc(until-now, func() { queue.Remind(key, until) })
	}
	return inherited
}

// takeOver returns the lock that w was passed or, if there is none, the result of w's attempts.
func (w *waiting) takeOver(k *Lock, f *failure) (*Lock, *failure) {
	if f == nil { // its attempt was under way, and so it was not taken
		return k, nil
	}
	for {
		switch taken, passed := w.locker.crowd.Taken(&w.entry); {
		case !taken:
			return k, f
		case passed && w.passed == nil:
			return nil, failed(ErrClosed)
		case passed:
			switch w.passed.hold.Why() {
			case hold.NotOver:
				return w.passed, nil
			case hold.ShutDown:
				return nil, failed(ErrClosed)
			default: // it ended while this goroutine was not run
				return nil, passedLate
			}
		}
		<-w.locker.crowd.Woken(&w.entry) // at once: whoever has taken it is about to pass it
	}
}

// sleep waits until signal is sent to or, if d is positive, until d has passed. It fails when ctx is done or closing is
// closed.
func (l *Locker) sleep(ctx context.Context, closing, signal <-chan struct{}, d time.Duration) error {
	var passed chan struct{}
	if d > 0 {
		passed = make(chan struct{})
		defer l.clock.AfterFunc(d, func() { close(passed) }).Stop()
	}
	select {
	case <-signal:
	case <-passed:
	case <-closing:
		return ErrClosed
	case <-ctx.Done():
		return ended(ctx)
	}
	return nil
}

// outageLeft returns the rest of an outage for a wait that began at since, if the outage may last for d; it returns d
// if there is no outage.
func (l *Locker) outageLeft(d, since, now time.Duration) time.Duration {
	began := time.Duration(l.unreached.Load())
	if began == 0 {
		return d
	}
	return max(began, since) + d - now
}

// reached records how a round that began at start ended. MaxOutage needs this, and so do waits in which masters
// complain. s is the acquisition, or nil for another operation.
func (l *Locker) reached(s *spec, f *failure, start time.Duration) {
	switch {
	case f == nil, f.kind == failHeld, f.kind == failLate: // masters enough have answered
		if l.unreached.Load() != 0 {
			l.unreached.Store(0)
		}
		if s != nil {
			l.complaining.end(s)
		}
	case f.kind == failUnreached && f.lasts() < single.Mendable: // what somebody has to mend is no outage
		l.unreached.CompareAndSwap(0, int64(max(1, start)))
	}
}
