package sharded

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/subscription"
	"github.com/seed-624411e5/redlock/single"
)

// This file makes one Locker of two groups between which keys move, for a transition.
//
// Its masters are pairs: the i-th of one group and the i-th of the other, as one voter that grants only what both grant.
// A quorum of pairs therefore contains a quorum of either group, so whoever locks in the one group only, or in the other
// only, or in both, excludes all the others. Nothing else of the algorithm has to know: a pair does each operation or
// it does not, as far as anybody can tell by its vote. What half of it did is removed; see uneven.go.

// joinGroups makes the Locker for keys that move between two groups.
func joinGroups(before, after *Group) (*redlock.Locker, error) {
	if len(before.Masters) != len(after.Masters) {
		return nil, invalid("keys move between the groups %q and %q, which have %d and %d masters: a transition needs as many in both",
			before.Name, after.Name, len(before.Masters), len(after.Masters))
	}
	pairs := make([]redlock.Master, len(before.Masters))
	for i := range pairs {
		pairs[i] = &pair{before: before.Masters[i], after: after.Masters[i]}
	}
	return redlock.New(pairs, stricter(before.Options, after.Options))
}

// stricter are options that keep what either group's promise.
func stricter(a, b redlock.Options) redlock.Options {
	b.DriftFactor = max(cmp.Or(a.DriftFactor, redlock.DefaultDriftFactor), cmp.Or(b.DriftFactor, redlock.DefaultDriftFactor))
	b.RequestTimeout = max(a.RequestTimeout, b.RequestTimeout)
	if b.RestartGuard == 0 || a.RestartGuard > 0 && a.RestartGuard < b.RestartGuard {
		b.RestartGuard = a.RestartGuard
	}
	return b
}

// pair is two masters as one voter.
type pair struct {
	before, after redlock.Master
	failing       failing
}

// Name implements [redlock.Master].
func (p *pair) Name() string { return p.before.Name() + " with " + p.after.Name() }

// RestartGuard implements [redlock.Guarded].
func (p *pair) RestartGuard() time.Duration { return min(guardOf(p.before), guardOf(p.after)) }

// guardOf is the restart guard of a master, 0 if it has none.
func guardOf(m redlock.Master) time.Duration {
	if g, ok := m.(redlock.Guarded); ok {
		return max(0, g.RestartGuard())
	}
	return 0
}

// Do implements [redlock.Master]: both get the batch at the same time, but for acquisitions while one of them does not answer.
func (p *pair) Do(ctx context.Context, batch []*single.Call) {
	began := time.Now()
	if deadline, ok := ctx.Deadline(); ok {
		// Each master's connections are shared with its own group, and waiting for one ends by Done alone.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	before, after := p.ask(ctx, batch)
	p.undo(ctx, began, batch, before, after)
	var uneven []*single.Call
	for i, c := range batch {
		join(c, before[i], after[i])
		if c.Err == nil && c.Request.Fence && c.Reply.Outcome == single.Granted && before[i].Reply.Token != after[i].Reply.Token {
			uneven = append(uneven, c)
		}
	}
	if len(uneven) > 0 {
		p.level(ctx, uneven)
	}
}

func copies(batch []*single.Call) []*single.Call {
	calls := make([]single.Call, len(batch))
	copied := make([]*single.Call, len(batch))
	for i, c := range batch {
		calls[i].Request, calls[i].Unqueued = c.Request, c.Unqueued
		copied[i] = &calls[i]
	}
	return copied
}

// join makes one answer of two: granted is what both granted, and the first refusal is what is in the way.
func join(c, a, b *single.Call) {
	c.Reply, c.Err = single.Reply{}, a.Err
	if a.Err == nil {
		c.Err = b.Err
	}
	if c.Err != nil {
		// What one of them did counts as sent, also if the other one never got it: then there is something to remove.
		c.Sent = a.Sent || b.Sent
		return
	}
	c.Sent = true
	if c.Request.Op == single.Inspect {
		c.Reply = either(a.Reply, b.Reply)
		return
	}
	switch {
	case a.Reply.Outcome == single.Refused:
		c.Reply = a.Reply
		if b.Reply.Outcome == single.Refused {
			c.Reply.TTL = longer(a.Reply.TTL, b.Reply.TTL)
		}
	case b.Reply.Outcome == single.Refused:
		c.Reply = b.Reply
	default:
		c.Reply.Outcome = max(a.Reply.Outcome, b.Reply.Outcome) // repaired if either is
	}
	c.Reply.Token = max(a.Reply.Token, b.Reply.Token)
	c.Reply.Called = a.Reply.Called || b.Reply.Called
}

// either is who holds a key in one of two groups: a process that knows only one of them holds it there alone.
func either(a, b single.Reply) single.Reply {
	if a.Outcome == single.Refused {
		return b
	}
	return a
}

// longer returns the later of two ends; negative is never.
func longer(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

// Prepare implements [redlock.Preparer].
func (p *pair) Prepare(r *single.Request) {
	for _, m := range []redlock.Master{p.before, p.after} {
		if m, ok := m.(redlock.Preparer); ok {
			m.Prepare(r)
		}
	}
}

// level has both masters accept a token above what either has returned. A pair must not return a token that one of its
// masters has not accepted: a later holder in that group alone would get a smaller one.
func (p *pair) level(ctx context.Context, calls []*single.Call) {
	raises := make([]*single.Call, len(calls))
	requests := make([]single.Request, len(calls))
	for i, c := range calls {
		requests[i] = single.Request{Op: single.Raise, Keys: c.Request.Keys, Owner: c.Request.Owner, Token: min(c.Reply.Token+1, single.MaxToken)}
		p.Prepare(&requests[i])
		raises[i] = &single.Call{Request: &requests[i]}
	}
	before, after := p.ask(ctx, raises)
	for i, c := range calls {
		join(raises[i], before[i], after[i])
		switch raised := raises[i]; {
		case raised.Err != nil:
			c.Err, c.Sent = raised.Err, true
		case raised.Reply.Outcome != single.Granted || raised.Reply.Token != requests[i].Token:
			c.Reply = single.Reply{Outcome: single.Refused, Token: raised.Reply.Token}
		default:
			c.Reply.Token = raised.Reply.Token
		}
	}
}

// Listen implements [redlock.Listener]: a notification by either master is passed on. A release may come from a process that knows only
// one of them, so ready is for when both have been subscribed to; if one can't be, waiters depend on their backoff.
func (p *pair) Listen(channel string, ready func(), notified func(message string)) (stop func()) {
	before, isBefore := p.before.(redlock.Listener)
	after, isAfter := p.after.(redlock.Listener)
	if !isBefore || !isAfter {
		return func() {}
	}
	made := func(mine, other *atomic.Bool) func() {
		return func() {
			mine.Store(true)
			if other.Load() {
				ready()
			}
		}
	}
	var toBefore, toAfter atomic.Bool
	stops := []func(){
		before.Listen(channel, made(&toBefore, &toAfter), notified),
		after.Listen(channel, made(&toAfter, &toBefore), notified),
	}
	return func() { subscription.StopAll(stops) }
}
