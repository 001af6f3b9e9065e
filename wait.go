package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/subscription"
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
	passed *Lock // what it was passed, if it was; see pass.go

	contend.Progress
	rounds     int   // that were sent
	last       error // what the latest attempt ended with
	subscribed bool  // the Locker listens on its account
}

// wait acquires in as many rounds as needed, and returns their number. since is the time when the wait began.
func (l *Locker) wait(ctx context.Context, s *spec, since time.Duration) (k *Lock, rounds int, err error) {
	if s.MaxAttempts == 1 { // there is nothing to wait for
		return l.once(ctx, s)
	}
	progress := contend.Progress{Since: since, Claims: s.kind == single.Exclusive}
	w := &waiting{locker: l, spec: s, Progress: progress}
	for {
		k, err = w.inQueue(ctx)
		if err != errPassedLate { //nolint:errorlint // our own
			return k, w.rounds, err
		}
		err = fmt.Errorf("redlock: acquire %q: %w", l.shown(s.keys[0]), err)
		again := &waiting{locker: l, spec: s, Progress: progress, rounds: w.rounds, last: err}
		again.Attempts = w.Attempts + 1
		switch { // as after a round that came too late
		case ctx.Err() != nil:
			return nil, w.rounds, again.gaveUp(ended(ctx))
		case s.MaxAttempts > 0 && again.Attempts >= s.MaxAttempts:
			return nil, w.rounds, err
		}
		w = again
	}
}

// inQueue waits in the queue until the lock is there or the wait ends.
func (w *waiting) inQueue(ctx context.Context) (k *Lock, err error) {
	s := w.spec
	w.locker.queue.Enter(&w.entry, waitqueue.Want{
		Keys: s.keys, Class: s.class(), Since: w.Since, Alone: s.entered, Seldom: s.Every > contend.NotifiedPause,
		Owner: ownerHash(s.owner), Reads: s.kind == single.Shared,
		Patient: s.passable() && s.MaxAttempts == 0 && s.MaxOutage == 0, Waiter: w,
	})
	defer func() { w.leave(ctx, k) }()
	k, err = w.takeOver(w.acquire(ctx))
	return k, err
}

// class groups acquisitions of the same keys by the commands and the timeout that they need. If one class reaches no
// quorum, another class still may.
func (s *spec) class() waitqueue.Class {
	class := uint64(s.ttl/time.Millisecond)<<16 | uint64(len(s.keys))<<4 | uint64(s.kind)<<1
	if s.fenced {
		class |= 1
	}
	return waitqueue.Class(class)
}

// acquire makes attempts until it wins one or the wait ends. An attempt is a round or, behind others in the queue, a
// pause spent there, since the first waiter asks for all waiters. But the last attempt that MaxAttempts allows is a
// round in any case. An acquisition that may enter a lock again does not wait for its turn. It asks as soon as its
// owner is known to have the key, because the waiters before it may be waiting for the very lock that it enters.
func (w *waiting) acquire(ctx context.Context) (*Lock, error) {
	for step := (contend.Step{Counts: true}); ; {
		turn, err := w.yield(ctx)
		if err != nil {
			return nil, w.gaveUp(err)
		}
		if err := w.unmended(); err != nil && turn && w.rounds == 0 { // those before it have just found that out
			return nil, err
		}
		final := false
		if step.Counts {
			w.Attempts++
			final = w.Attempts == w.spec.MaxAttempts
		}
		if turn || final || step.Enters {
			k, err := w.attempt(ctx, turn, final)
			switch q, decided := errors.AsType[*QuorumError](err); {
			case err == nil, final && decided:
				return k, err
			//nolint:errorlint // our own
			case decided && q.lasts >= single.Final, errors.Is(err, ErrOutdated), err == errPassed:
				return nil, err // whatever the round before said
			case !decided:
				return nil, w.gaveUp(err)
			}
			if w.refused(err, turn); w.unmended() != nil {
				return nil, err
			}
		} else if w.last == nil {
			w.last = errQueued
		}
		w.plan(turn, step.Counts)
		w.locker.observeWait(w.spec)
		if step, err = w.pause(ctx); err != nil {
			return nil, w.gaveUp(err)
		}
	}
}

var (
	errQueued = fmt.Errorf("%w: others of this process are first in the queue", ErrHeld)
	errAhead  = fmt.Errorf("%w: others are let go first", ErrHeld)
)

// gaveUp is the error of a wait that err has ended.
func (w *waiting) gaveUp(err error) error {
	if w.last == nil {
		return err
	}
	return &waitError{key: w.locker.shown(w.spec.keys[0]), ended: err, last: w.last}
}

// yield waits a little if this attempt should let others go first, and reports whether it is w's turn.
func (w *waiting) yield(ctx context.Context) (turn bool, err error) {
	l := w.locker
	for {
		switch { // it is woken when the one before it leaves, and both may have been cancelled
		case ctx.Err() == nil:
		case w.last == nil:
			return false, fmt.Errorf("redlock: acquire %q: %w", l.shown(w.spec.keys[0]), ended(ctx))
		default:
			return false, ended(ctx)
		}
		turn, d := l.queue.Yield(&w.entry, l.clock.Now)
		if d <= 0 || !turn {
			return turn, nil
		}
		if err := l.sleep(ctx, l.closing, l.queue.Woken(&w.entry), d); err != nil {
			if w.last == nil {
				w.last = errAhead
			}
			return false, err
		}
	}
}

// attempt is a round, or a try if it is the last one.
func (w *waiting) attempt(ctx context.Context, turn, final bool) (*Lock, error) {
	if final {
		return w.locker.try(ctx, w.spec, func() (*Lock, error) { return w.round(ctx, turn) })
	}
	return w.round(ctx, turn)
}

// round sends one round, as this Locker's waiter if it is w's turn.
func (w *waiting) round(ctx context.Context, turn bool) (k *Lock, err error) {
	switch {
	case turn:
		k, err = w.locker.attempt(ctx, w.spec, w)
	case w.locker.queue.Start(&w.entry):
		k, err = w.locker.attempt(ctx, w.spec, nil)
	default:
		err = errPassed
	}
	if err != errPassed { //nolint:errorlint // our own
		w.rounds++
	}
	return k, err
}

// refused takes note of a round that was not won.
func (w *waiting) refused(err error, turn bool) {
	l := w.locker
	l.queue.End(&w.entry)
	w.last = err
	w.Unreached = turn && !errors.Is(err, ErrHeld)
	w.complained(err)
	if !turn {
		return
	}
	if q, is := errors.AsType[*QuorumError](err); is {
		blocking := l.withPrefix(q.blockingKeys())
		if len(w.spec.keys) > 1 && errors.Is(err, ErrHeld) {
			if unclaimed := l.queue.Blocked(&w.entry, blocking, l.clock.Now()); len(unclaimed) > 0 {
				l.depart(w.spec, unclaimed, w.latest, everyMaster)
			}
		}
		owners, claimed := q.holders()
		if l.queue.Held(&w.entry, owners, claimed) && w.spec.kind != single.Shared {
			w.Claims = true
		}
	}
	if !w.subscribed {
		w.subscribed = true
		l.subscription.Enter()
	}
}

// plan decides when the next attempt is due.
func (w *waiting) plan(turn, counts bool) {
	l := w.locker
	now := l.clock.Now()
	w.Plan(&w.spec.Policy, &contend.After{
		Refusal: refusalOf(w.last), Now: now, Took: now - w.tried(), Turn: turn, Counts: counts,
		Subscribed: l.subscription.Subscribed(),
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
		v := contend.View{Status: l.queue.Status(&w.entry), Now: l.clock.Now()}
		v.OutageLeft = l.outageLeft(s.MaxOutage, w.Since, v.Now)
		step := w.Next(&s.Policy, &v)
		switch step.Do {
		case contend.TakeOver:
			return step, errPassed
		case contend.GiveUp:
			return step, fmt.Errorf("%w for %v, the MaxOutage", ErrNoQuorum, s.MaxOutage)
		case contend.Try:
			if step.StepBack {
				w.Unreached = false
				l.queue.StepBack(&w.entry)
			}
			return step, nil
		case contend.Sleep:
		}
		if err := l.sleep(ctx, l.closing, l.queue.Woken(&w.entry), step.Until-v.Now); err != nil {
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
		if unclaimed, after := l.queue.GiveUp(&w.entry, l.clock.Now, latest, heirAfter); len(unclaimed) > 0 {
			behind, _ := after.(*Lock)
			l.depart(w.spec, unclaimed, behind, everyMaster)
		}
	}
	if w.subscribed {
		l.subscription.Leave()
	}
}

// leaveQueue ends the wait that has got the lock.
func (k *Lock) leaveQueue(w *waiting) {
	var queued uint64
	if w.latest != nil && w.latest != k { // it was passed the lock
		queued = w.latest.queuedOn()
	}
	var inherited bool
	if k.passing.window > 0 {
		inherited = k.leaveQuietly(&w.entry)
	} else {
		inherited = k.locker.queue.Leave(&w.entry, k.locker.clock.Now)
	}
	if inherited {
		queued = everyMaster
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queued = k.queued || inherited
	if queueOn(k.states, queued); queued != 0 {
		k.waiterID = k.locker.id // also where it was won out of turn
	}
}

// released is called for every decided release. The release of a failed attempt frees no key that a waiter needs, and
// the release of a key that is kept for a while frees none yet. When a held lock was released, released wakes the
// first waiter in the queue, unless the masters have notified a waiter, which may be in another process. Then this
// Locker is polite for a while, and the masters notify its waiters like all others.
func (l *Locker) released(r *round) {
	k := r.lock
	k.mu.Lock()
	held, notified := k.state.Held, false
	for i := range r.ballots {
		b := &r.ballots[i]
		notified = notified || b.ended && b.Reply.Called
	}
	k.mu.Unlock()
	switch {
	case !held:
	case r.request.Keep > 0:
		l.queue.LookAt(r.request.Keys) // for how long
	case notified && r.request.Waiter == "":
		l.outrun(r.request.Keys)
	case notified:
		l.dequeued(r.request.Keys, true)
	default:
		l.queue.Wake(r.request.Keys)
	}
}

// outrun records that a release has notified a waiter for keys, which may be in another process.
func (l *Locker) outrun(keys []string) {
	now := l.clock.Now()
	l.queue.Rival(keys, now+l.giveWay(), now+subscription.Linger)
}

// dequeued makes the waiters of this process try again: a release has taken this Locker out of masters' queues for
// keys, and may have notified another waiter. If the janitor repeats a release, it comes long after these waiters
// began to wait. Then no other message tells them that the key is free.
func (l *Locker) dequeued(keys []string, notified bool) {
	if notified {
		l.outrun(keys)
	}
	l.queue.Dequeued(keys)
}

// sleep waits until signal is sent to or, if d is positive, until d has passed. It fails when ctx is done or closing is closed.
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
func (l *Locker) reached(s *spec, err error, start time.Duration) {
	answered := err == nil || errors.Is(err, ErrHeld) || errors.Is(err, ErrExpired)
	switch {
	case answered:
		if l.unreached.Load() != 0 {
			l.unreached.Store(0)
		}
		if s != nil {
			l.complaining.end(s)
		}
	case errors.Is(err, ErrMisconfigured): // masters enough could be reached, or what keeps them from it is no outage
	case errors.Is(err, ErrNoQuorum):
		l.unreached.CompareAndSwap(0, int64(max(1, start)))
	}
}
