package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/subscription"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// This file waits for a lock. What it was written against, and what a waiter does in each case, is in docs/understand/waiting.md and
// docs/understand/protocol.md; the order among waiters of one Locker is kept by internal/waitqueue.

// waiting is one acquisition that waits if it has to. Only its own goroutine uses it, except for the entry.
type waiting struct {
	locker *Locker
	spec   *spec
	entry  waitqueue.Entry
	since  time.Duration
	latest *Lock // of the latest attempt made in turn
	passed *Lock // what it was passed, if it was; see pass.go

	rounds     int           // that were sent
	attempts   int           // as MaxAttempts counts them
	due        time.Duration // when the next attempt is due that counts; 0: when woken
	soon       time.Duration // when it would be due if everything were by default
	refresh    time.Duration // when its claim, or its position in the masters' queues, wants refreshing; 0: an attempt is due before
	last       error         // what the latest attempt ended with
	unreached  bool          // it reached no quorum
	claims     bool          // readers have been in its way, or of those before it, and it lets no new ones in
	enters     bool          // it is not its turn, but it would be let in
	subscribed bool          // the Locker listens on its account

	complainedOf time.Duration // since when its attempts have met complaints of masters; 0: the latest has not
}

// wait acquires by as many rounds as it takes, and says how many those were. since is when the wait began.
func (l *Locker) wait(ctx context.Context, s *spec, since time.Duration) (k *Lock, rounds int, err error) {
	if s.maxAttempts == 1 { // there is nothing to wait for
		return l.once(ctx, s)
	}
	w := &waiting{locker: l, spec: s, since: since}
	for {
		k, err = w.inQueue(ctx)
		if err != errPassedLate { //nolint:errorlint // our own
			return k, w.rounds, err
		}
		err = fmt.Errorf("redlock: acquire %q: %w", l.shown(s.keys[0]), err)
		again := &waiting{locker: l, spec: s, since: since, rounds: w.rounds, attempts: w.attempts + 1, last: err}
		switch { // as after a round that came too late
		case ctx.Err() != nil:
			return nil, w.rounds, again.gaveUp(ended(ctx))
		case s.maxAttempts > 0 && again.attempts >= s.maxAttempts:
			return nil, w.rounds, err
		}
		w = again
	}
}

// inQueue waits in the queue until the lock is there or the wait ends.
func (w *waiting) inQueue(ctx context.Context) (k *Lock, err error) {
	s := w.spec
	w.locker.queue.Enter(&w.entry, waitqueue.Want{
		Keys: s.keys, Class: s.class(), Since: w.since, Alone: s.entered, Seldom: s.every > notifiedPause,
		Owner: ownerHash(s.owner), Reads: s.kind == single.Shared,
		Patient: s.passable() && s.maxAttempts == 0 && s.maxOutage == 0, Waiter: w,
	})
	defer func() { w.leave(ctx, k) }()
	k, err = w.takeOver(w.acquire(ctx))
	return k, err
}

// class tells apart acquisitions of the same keys of which one may reach no quorum where the other does: each needs other
// commands, and has another timeout.
func (s *spec) class() waitqueue.Class {
	class := uint64(s.ttl/time.Millisecond)<<16 | uint64(len(s.keys))<<4 | uint64(s.kind)<<1
	if s.fenced {
		class |= 1
	}
	return waitqueue.Class(class)
}

// acquire makes attempts until one is won or the wait ends. An attempt is a round or, behind others in the queue, a pause
// spent there, since the first asks for all of them; but the last one that MaxAttempts allows is a round in any case. What
// may enter a lock again asks also while it is not its turn, as soon as its owner is known to have the key: those before it may be
// waiting for the very lock that it is under.
func (w *waiting) acquire(ctx context.Context) (*Lock, error) {
	for counts := true; ; {
		turn, err := w.yield(ctx)
		if err != nil {
			return nil, w.gaveUp(err)
		}
		if err := w.unmended(); err != nil && turn && w.rounds == 0 { // those before it have just found that out
			return nil, err
		}
		final := false
		if counts {
			w.attempts++
			final = w.attempts == w.spec.maxAttempts
		}
		if turn || final || w.enters {
			w.enters = false
			k, err := w.attempt(ctx, turn, final)
			switch q, decided := errors.AsType[*QuorumError](err); {
			case err == nil, final && decided:
				return k, err
			case decided && q.lasts >= single.Final, errors.Is(err, ErrOutdated), err == errPassed: //nolint:errorlint // our own
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
		w.plan(turn, counts)
		w.locker.observeWait(w.spec)
		if counts, err = w.pause(ctx); err != nil {
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

// yield lets those go first for whom this attempt should wait a little, and reports whether it is w's turn.
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
		if err := l.sleep(ctx, l.queue.Woken(&w.entry), d); err != nil {
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
	w.unreached = turn && !errors.Is(err, ErrHeld)
	w.complained(err)
	if !turn {
		return
	}
	if q, is := errors.AsType[*QuorumError](err); is {
		blocking := l.withPrefix(q.blockingKeys())
		if len(w.spec.keys) > 1 && errors.Is(err, ErrHeld) {
			if unclaimed := l.queue.Blocked(&w.entry, blocking, l.clock.Now()); len(unclaimed) > 0 {
				l.depart(w.spec, unclaimed, w.latest)
			}
		}
		owners, claimed := q.holders()
		if l.queue.Held(&w.entry, owners, claimed) && w.spec.kind != single.Shared {
			w.claims = true
		}
	}
	if !w.subscribed {
		w.subscribed = true
		l.subscription.Enter()
	}
}

// plan decides when the next attempt is due. One that does not count, because only a release that was missed would have
// let it succeed, puts nothing off.
func (w *waiting) plan(turn, counts bool) {
	l, s := w.locker, w.spec
	now := l.clock.Now()
	w.soon = now + max(l.pause(w.last, w.attempts, now-w.tried()), w.complainingPause(now))
	switch {
	case !turn && s.maxAttempts == 0:
		w.due = 0
	case s.every == 0 && (counts || s.maxAttempts == 0):
		w.due = w.soon
	case counts:
		w.due = now + s.every
	}
	if free := keptFor(w.last); turn && s.every > 0 && free > 0 { // a release was known of before the key is free
		w.due = min(w.due, now+free+l.opts.Jitter(firstPause))
	}
	if by := w.mendBy(w.complainedOf, lastingOf(w.last)); by > 0 && w.due > 0 { // once more then, however seldom it asks
		w.due, w.soon = min(w.due, by), min(w.soon, by)
	}
	w.refresh = 0
	if after := w.refreshAfter(); turn && after > 0 && w.due-now > after {
		w.refresh = now + after + l.opts.Jitter(after/8)
	}
}

// refreshAfter is how soon after an attempt another one is due, however seldom w asks, so that the masters know that it still waits; 0: never.
func (w *waiting) refreshAfter() time.Duration {
	switch {
	case w.claims || w.spec.kind == single.Exclusive:
		return claimAfter
	case w.locker.subscription.Subscribed():
		return refreshAfter
	default:
		return 0
	}
}

// tried is when the latest attempt began.
func (w *waiting) tried() time.Duration {
	if w.latest == nil {
		return w.locker.clock.Now()
	}
	return w.latest.began
}

// pause waits for the next attempt, and reports whether it counts.
func (w *waiting) pause(ctx context.Context) (counts bool, err error) {
	l := w.locker
	for {
		status, now := l.queue.Status(&w.entry), l.clock.Now()
		switch {
		case status.Taken:
			return false, errPassed
		case !status.Turn && status.Why&waitqueue.Enters != 0:
			w.enters = true
			return false, nil
		case !status.Turn:
		case status.Why&(waitqueue.First|waitqueue.Free) != 0:
			return true, nil
		case status.Why&(waitqueue.Missed|waitqueue.Enters) != 0:
			return false, nil
		}
		until := w.due
		if status.Turn && status.Company && until > 0 {
			until = min(until, w.soon) // those behind it must not suffer from its RetryEvery
		}
		if status.Turn && w.refresh > 0 {
			until = min(until, w.refresh)
		}
		if until > 0 && now >= until {
			if w.unreached {
				w.unreached = false
				l.queue.StepBack(&w.entry)
			}
			return now >= w.due, nil
		}
		d := max(0, until-now)
		if s := w.spec; s.maxOutage > 0 {
			left := l.outageLeft(s.maxOutage, w.since, now)
			if left <= 0 && status.Turn && errors.Is(w.last, ErrHeld) {
				return false, nil // its own last round reached a quorum: what did not was another's, so it looks
			}
			if left <= 0 {
				return false, fmt.Errorf("%w for %v, the MaxOutage", ErrNoQuorum, s.maxOutage)
			}
			if d == 0 || left < d {
				d = left
			}
		}
		if err := l.sleep(ctx, l.queue.Woken(&w.entry), d); err != nil {
			return false, err
		}
	}
}

// leave ends the wait: k is what it got, nil when it gives up. Its claim must not keep readers of this Locker out either, which will
// queue up again.
func (w *waiting) leave(ctx context.Context, k *Lock) {
	l := w.locker
	if k != nil {
		k.leaveQueue(&w.entry)
	} else {
		var heirAfter time.Duration
		if ctx.Err() != nil {
			heirAfter = maxPause / 2
		}
		var latest any
		if w.latest != nil {
			latest = w.latest
		}
		if unclaimed, after := l.queue.GiveUp(&w.entry, l.clock.Now, latest, heirAfter); len(unclaimed) > 0 {
			behind, _ := after.(*Lock)
			l.depart(w.spec, unclaimed, behind)
		}
	}
	if w.subscribed {
		l.subscription.Leave()
	}
}

// leaveQueue ends the wait that has got the lock.
func (k *Lock) leaveQueue(e *waitqueue.Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var inherited bool
	if k.passing.window > 0 {
		inherited = k.leaveQuietlyLocked(e)
	} else {
		inherited = k.locker.queue.Leave(e, k.locker.clock.Now)
	}
	k.mayBeQueued = k.mayBeQueued || inherited
}

// released is told of every release that was decided. The release of a failed attempt frees nothing that anyone waits
// for, and that of a key which is kept for a while frees none yet. Of a lock that was held, the first in the queue is woken, unless the masters have notified somebody, who may be in
// another process: then this Locker is polite for a while, and its own waiters are notified like everybody's.
func (l *Locker) released(r *round) {
	k := r.lock
	k.mu.Lock()
	held, notified := k.until > 0, false
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

// outrun notes that a release has notified somebody of keys, who may be in another process.
func (l *Locker) outrun(keys []string) {
	now := l.clock.Now()
	l.queue.Rival(keys, now+l.giveWay(), now+subscription.Linger)
}

// dequeued has those who wait here look again: a release has taken this Locker out of masters' queues for keys, and may have notified somebody. One that
// the janitor repeats comes long after they have begun to wait, and then nothing else tells them that the key is free.
func (l *Locker) dequeued(keys []string, notified bool) {
	if notified {
		l.outrun(keys)
	}
	l.queue.Dequeued(keys)
}

// sleep waits until signal is sent to or, if d is positive, until d has passed. It fails when ctx is done or the Locker is
// being closed.
func (l *Locker) sleep(ctx context.Context, signal <-chan struct{}, d time.Duration) error {
	var passed chan struct{}
	if d > 0 {
		passed = make(chan struct{})
		defer l.clock.AfterFunc(d, func() { close(passed) }).Stop()
	}
	select {
	case <-signal:
	case <-passed:
	case <-l.closing:
		return ErrClosed
	case <-ctx.Done():
		return ended(ctx)
	}
	return nil
}
