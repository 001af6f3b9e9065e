package contend

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// This file waits for a lock. docs/understand/waiting.md and docs/evidence/interleavings.md say how a waiter behaves
// in each case, and why. The package internal/waitqueue keeps the order among waiters of one Locker.

// waiting is one acquisition that waits if it has to. Only its own goroutine uses it, except for the entry.
type waiting struct {
	crowd *Crowd
	of    *Acquisition
	locks Locks
	entry waitqueue.Entry
	tried *hold.Hold // of the latest attempt made in turn
	began time.Duration
	heir  *hold.Hold // what it was passed, if it was

	Progress
	rounds     int      // that were sent
	last       *Failure // of the latest attempt; nil before the first
	subscribed bool     // the Locker listens on its account
}

// Wait acquires in as many rounds as needed, and returns their number.
func (c *Crowd) Wait(ctx context.Context, a *Acquisition, locks Locks) (h *hold.Hold, rounds int, f *Failure) {
	if a.MaxAttempts == 1 { // there is nothing to wait for
		return c.Once(ctx, a, locks)
	}
	progress := Progress{Since: c.env.Now(), Claims: a.Kind == single.Exclusive}
	w := &waiting{crowd: c, of: a, locks: locks, Progress: progress}
	for {
		h, f := w.inQueue(ctx)
		if f == nil || f.Kind != PassedLate {
			return h, w.rounds, f
		}
		again := &waiting{crowd: c, of: a, locks: locks, Progress: progress, rounds: w.rounds, last: f}
		again.Attempts = w.Attempts + 1
		switch { // as after a round that came too late
		case ctx.Err() != nil:
			return nil, w.rounds, again.gaveUp(stopped)
		case a.MaxAttempts > 0 && again.Attempts >= a.MaxAttempts:
			return nil, w.rounds, f
		}
		w = again
	}
}

// inQueue waits in the queue until the lock is there or the wait ends.
func (w *waiting) inQueue(ctx context.Context) (h *hold.Hold, f *Failure) {
	a := w.of
	w.crowd.Enter(&w.entry, waitqueue.Want{
		Keys: a.Keys, Class: a.class(), Since: w.Since, Alone: a.Enters, Seldom: a.Every > NotifiedPause,
		Owner: ownerHash(a.Owner), Reads: a.Kind == single.Shared,
		Patient: a.Passable() && a.MaxAttempts == 0 && a.MaxOutage == 0, Waiter: w,
	})
	defer func() { w.leave(ctx, h) }()
	h, f = w.takeOver(w.acquire(ctx))
	return h, f
}

// acquire makes attempts until it wins one or the wait ends. An attempt is a round or, behind others in the queue, a
// pause spent there, since the first waiter asks for all waiters. But the last attempt that MaxAttempts allows is a
// round in any case. An acquisition that may enter a lock again does not wait for its turn. It asks as soon as its
// owner is known to have the key, because the waiters before it may be waiting for the very lock that it enters.
func (w *waiting) acquire(ctx context.Context) (*hold.Hold, *Failure) {
	for step := (Step{Counts: true}); ; {
		turn, end := w.yield(ctx)
		if end != nil {
			return nil, w.gaveUp(end)
		}
		if f := w.unmended(); f != nil && turn && w.rounds == 0 { // those before it have just found that out
			return nil, f
		}
		final := false
		if step.Counts {
			w.Attempts++
			final = w.Attempts == w.of.MaxAttempts
		}
		if turn || final || step.Enters {
			h, f := w.attempt(ctx, turn, final)
			switch {
			case f == nil, final && f.Result != nil:
				return h, f
			case f.Lasts >= single.Final, f.Kind == Outdated, f.Kind == Passing:
				return nil, f // whatever the round before said
			case f.Result == nil:
				return nil, w.gaveUp(f)
			}
			if w.refused(f, turn); w.unmended() != nil {
				return nil, f
			}
		} else if w.last == nil {
			w.last = &Failure{Kind: Behind}
		}
		w.plan(turn, step.Counts)
		w.locks.Waits()
		if step, end = w.pause(ctx); end != nil {
			return nil, w.gaveUp(end)
		}
	}
}

// gaveUp is the failure of a wait that has ended without the lock.
func (w *waiting) gaveUp(end *Failure) *Failure {
	switch {
	case w.last == nil:
		return end
	case w.last.Kind == Behind && w.crowd.Outage.Since() != 0:
		w.last = &Failure{Kind: BehindOutage}
	}
	return &Failure{Kind: GaveUp, End: end, Last: w.last}
}

// yield waits a little if this attempt should let others go first, and reports whether it is w's turn.
func (w *waiting) yield(ctx context.Context) (turn bool, end *Failure) {
	c := w.crowd
	for {
		switch { // it is woken when the one before it leaves, and both may have been cancelled
		case ctx.Err() == nil:
		case w.last == nil:
			return false, &Failure{Failure: hold.Failure{Fault: hold.Cancelled, Op: single.Acquire}}
		default:
			return false, stopped
		}
		turn, d := c.Yield(&w.entry, c.env.Now)
		if d <= 0 || !turn {
			return turn, nil
		}
		if end := c.Sleep(ctx, c.closing, c.Woken(&w.entry), d); end != nil {
			if w.last == nil {
				w.last = &Failure{Kind: Yielding}
			}
			return false, end
		}
	}
}

// attempt is a round, or a try if it is the last one.
func (w *waiting) attempt(ctx context.Context, turn, final bool) (*hold.Hold, *Failure) {
	if final {
		return w.crowd.try(ctx, w.of, func() (*hold.Hold, *Failure) { return w.round(ctx, turn) })
	}
	return w.round(ctx, turn)
}

// round sends one round, as this Locker's waiter if it is w's turn.
func (w *waiting) round(ctx context.Context, turn bool) (h *hold.Hold, f *Failure) {
	switch {
	case turn:
		h, f = w.crowd.attempt(ctx, w.of, w.locks, w)
	case w.crowd.Start(&w.entry):
		h, f = w.crowd.attempt(ctx, w.of, w.locks, nil)
	default:
		f = passing
	}
	if f == nil || f.Kind != Passing {
		w.rounds++
	}
	return h, f
}

// refused takes note of a round that was not won.
func (w *waiting) refused(f *Failure, turn bool) {
	c, held := w.crowd, f.is(hold.Refusal)
	c.End(&w.entry)
	w.last = f
	w.Unreached = turn && !held
	w.complained(f)
	if !turn {
		return
	}
	set := &c.env.Sets[f.Set]
	if len(w.of.Keys) > 1 && held {
		if unclaimed := c.Blocked(&w.entry, f.blockingKeys(set), c.env.Now()); len(unclaimed) > 0 {
			c.Depart(&w.of.Terms, unclaimed, w.tried, hold.EveryMaster)
		}
	}
	owners, claimed := f.holders(set)
	if c.Held(&w.entry, owners, claimed) && w.of.Kind != single.Shared {
		w.Claims = true
	}
	if !w.subscribed {
		w.subscribed = true
		c.Subscription.Enter()
	}
}

// plan decides when the next attempt is due.
func (w *waiting) plan(turn, counts bool) {
	c := w.crowd
	after := After{
		Refusal: w.last.Refusal(c.env.Sets), Now: c.env.Now(), Turn: turn, Counts: counts,
		Subscribed: c.Subscription.Subscribed(),
	}
	if w.tried != nil {
		after.Took = after.Now - w.began
	}
	w.Plan(&w.of.Policy, &after, c.env.Jitter)
}

// pause waits for the next attempt, and returns its kind.
func (w *waiting) pause(ctx context.Context) (Step, *Failure) {
	c := w.crowd
	for {
		v := View{Status: c.Status(&w.entry), Now: c.env.Now()}
		v.OutageLeft = c.Outage.left(w.of.MaxOutage, w.Since, v.Now)
		step := w.Next(&w.of.Policy, &v)
		switch step.Do {
		case TakeOver:
			return step, passing
		case GiveUp:
			return step, &Failure{Kind: OutageOver}
		case Try:
			if step.StepBack {
				w.Unreached = false
				c.StepBack(&w.entry)
			}
			return step, nil
		case Sleep:
		}
		if end := c.Sleep(ctx, c.closing, c.Woken(&w.entry), step.Until-v.Now); end != nil {
			return step, end
		}
	}
}

// leave ends the wait. h is the lock, or nil after a wait without one. The wait's claim must not keep readers of this
// Locker out either; these readers will enter the queue again.
func (w *waiting) leave(ctx context.Context, h *hold.Hold) {
	c := w.crowd
	if h != nil {
		w.leaveWith(h)
	} else {
		var heirAfter time.Duration
		if ctx.Err() != nil {
			heirAfter = MaxPause / 2
		}
		var tried any
		if w.tried != nil {
			tried = w.tried
		}
		if unclaimed, after := c.GiveUp(&w.entry, c.env.Now, tried, heirAfter); len(unclaimed) > 0 {
			behind, _ := after.(*hold.Hold)
			c.Depart(&w.of.Terms, unclaimed, behind, hold.EveryMaster)
		}
	}
	if w.subscribed {
		c.Subscription.Leave()
	}
}

// leaveWith ends the wait that has got the lock.
func (w *waiting) leaveWith(h *hold.Hold) {
	var queued uint64
	if w.tried != nil && w.tried != h { // it was passed the lock
		queued = w.tried.QueuedOn()
	}
	inherited := w.leaveQuietly(h)
	if inherited {
		queued = hold.EveryMaster
	}
	if queued != 0 {
		h.QueueOn(w.crowd.ID, queued, inherited) // also where it was won out of turn
	}
}

// leaveQuietly takes the wait that has got the lock out of the queue. While the lock may be passed on, the waiters
// behind it do not try. They enter the masters' queues once the lock can't be passed on any more. An extension, or a
// check that finds the lock lost, may come between the first look and the queue. Then its message to the queue came
// too early. So leaveQuietly checks again whether the lock may be passed on.
func (w *waiting) leaveQuietly(h *hold.Hold) (inherited bool) {
	c, key, now := w.crowd, w.of.Keys[0], w.crowd.env.Now()
	if !h.MayPass() {
		return c.Leave(&w.entry, c.env.Now)
	}
	until := h.Passable(now)
	inherited = c.LeaveQuietly(&w.entry, until)
	if until == 0 {
		return inherited
	}
	if h.Passable(now) == 0 {
		c.Remind(key, until)
	}
	if h.Remind() { // others have the reminder of theirs
		c.env.After(until-now, func() { c.Remind(key, until) })
	}
	return inherited
}

// takeOver returns the lock that w was passed or, if there is none, the result of w's attempts.
func (w *waiting) takeOver(h *hold.Hold, f *Failure) (*hold.Hold, *Failure) {
	if f == nil { // its attempt was under way, and so it was not taken
		return h, nil
	}
	for {
		switch taken, passed := w.crowd.Taken(&w.entry); {
		case !taken:
			return h, f
		case passed && w.heir == nil:
			return nil, closed
		case passed:
			switch w.heir.Why() {
			case hold.NotOver:
				return w.heir, nil
			case hold.ShutDown:
				return nil, closed
			default: // it ended while this goroutine was not run
				return nil, passedLate
			}
		}
		<-w.crowd.Woken(&w.entry) // at once: whoever has taken it is about to pass it
	}
}
