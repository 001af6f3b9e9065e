package contend

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

// Acquisition is one call for a lock: its arguments, and the rivals and complaints that its attempts have met.
type Acquisition struct {
	Policy
	hold.Terms
	Owner  string // "": a new one for every attempt
	Value  string // that is published, with the token
	Enters bool   // it enters a lock again, and waits for nobody of its process

	contest    Contest    // who is in the way of a try
	complaints complaints // that its requests met
}

// Locks makes the locks of one acquisition, and learns how its wait goes on.
type Locks interface {
	Make(value string) *hold.Hold   // for one attempt, in the name of this owner or a new one; nil after Close
	Succeed(*hold.Offer) *hold.Hold // takes over a lock that is passed on; nil if Close has given it up
	Waits()                         // an attempt has failed, and another follows
	Complains(*Failure)             // so many masters complain that no quorum is left, and the wait goes on
}

// class groups acquisitions of the same keys by the commands and the timeout that they need. If one class reaches no
// quorum, another class still may.
func (a *Acquisition) class() waitqueue.Class {
	class := uint64(a.TTL/time.Millisecond)<<16 | uint64(len(a.Keys))<<4 | uint64(a.Kind)<<1
	if a.Fenced {
		class |= 1
	}
	return waitqueue.Class(class)
}

// attempt runs one acquisition round: for w, which waits, or without waiting (nil).
func (c *Crowd) attempt(ctx context.Context, a *Acquisition, locks Locks, w *waiting) (*hold.Hold, *Failure) {
	if isClosed(c.closing) {
		return nil, closed
	}
	asOf, f := c.AwaitCurrent(ctx, c.closing, a.Timeout, &a.Sent)
	if f != nil {
		return nil, f
	}
	began := c.env.Now()
	var turn waitqueue.Attempt
	if w != nil {
		if turn = c.Begin(&w.entry, began); turn.Taken {
			return nil, passing
		}
	}
	ask, value := hold.Ask{AsOf: asOf}, a.Owner
	if a.Fenced {
		ask.Token = c.env.Tokens.Propose()
	}
	if a.Publishes {
		ask.Token = max(ask.Token, a.contest.Counter()+1)
		value = owner.NewPublished(c.env.Identity, ask.Token, a.Value)
	}
	h := locks.Make(value)
	if h == nil {
		return nil, closed
	}
	if w != nil {
		switch {
		case turn.Inherited:
			ask.QueuedOn = hold.EveryMaster
		case w.tried != nil:
			ask.QueuedOn = w.tried.QueuedOn()
		}
		w.tried, w.began, ask.Waiter, ask.Waited = h, began, c.ID, began-w.Since
		ask.Queued, ask.Polite = turn.MayBeQueued, turn.Polite
	}
	if turn.Followed {
		ask.Window = a.Window()
	}
	a.contest.Enter(h)
	if f := c.Acquire(ctx, a, h, began, ask); f != nil {
		return nil, f
	}
	return h, nil
}

// Acquire gets a hold its keys, in an attempt that has begun. After a failure it is not held, and the keys that the
// request has set are being released.
func (c *Crowd) Acquire(ctx context.Context, a *Acquisition, h *hold.Hold, began time.Duration, ask hold.Ask) *Failure {
	f := c.Failed(a, h.Take(ctx, ask))
	c.reached(a, f, began)
	if f != nil {
		h.Abandon()
	}
	return f
}

// Sleep waits until signal is sent to or, if d is positive, until d has passed. It fails when ctx is done or closing is
// closed.
func (c *Crowd) Sleep(ctx context.Context, closing, signal <-chan struct{}, d time.Duration) *Failure {
	var passed chan struct{}
	if d > 0 {
		passed = make(chan struct{})
		defer c.env.After(d, func() { close(passed) }).Stop()
	}
	select {
	case <-signal:
	case <-passed:
	case <-closing:
		return closed
	case <-ctx.Done():
		return stopped
	}
	return nil
}
