package redlock

import (
	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

// host is a Locker as its holds know it. Its waiters answer most questions.
type host struct {
	*contend.Crowd
	locker *Locker
}

// initEnv prepares the common part of the Locker's holds.
func (l *Locker) initEnv() {
	e := &l.env
	l.rules = rules{l.sets, l.opts.DriftFactor}
	e.Rules = &l.rules
	for _, set := range l.sets {
		e.Sets = append(e.Sets, hold.Set{Members: set.members, Quorum: set.quorum})
	}
	e.Prepare, e.Now, e.After, e.Jitter, e.Identity = l.prepare, l.clock.Now, l.after, l.opts.Jitter, l.opts.Identity
	if l.observer != nil {
		e.Watch = (*watch)(l)
	}
	e.Registry = hold.NewRegistry[*hold.Hold](l.closing)
	e.Tokens.Wall = l.clock.Wall
	e.Schedule = schedule.New(l.clock.Now, l.after)
	e.Renewals = hold.NewRenewals()
	id := owner.Random()
	l.crowd = contend.New(&contend.Config{
		ID: id, Env: e, Masters: l.listeners(id), Closing: l.closing, Generation: l.opts.Generation,
		Timeout: l.opts.requestTimeout(maxRequestTimeout * timeoutShare),
	})
	e.Host = &host{l.crowd, l}
	e.Janitor = newJanitor(l)
}

// NotRenewed implements [hold.Host].
func (w *host) NotRenewed(h *hold.Hold) {
	l := w.locker
	if err := l.outdated(); err != nil {
		l.observer.tell(l, lockOf(h).spec, Event{Kind: EventExtend, Op: opNames[single.Extend], Err: err})
	}
}

// Passed implements [hold.Host].
func (w *host) Passed(o *hold.Offer) {
	h, held := o.Held()
	w.locker.observer.tell(w.locker, lockOf(h).spec,
		Event{Kind: EventPass, Op: opNames[single.Release], Held: true, HeldFor: held})
	w.Crowd.Passed(o)
}

// newJanitor makes the janitor, which repeats releases to masters that have not confirmed.
func newJanitor(l *Locker) *janitor.Janitor {
	c := janitor.Config{
		Masters: len(l.env.Lanes),
		Now:     l.clock.Now,
		After:   l.after,
		Send:    func(c *lane.Call) { l.env.Lanes[c.Index].Send(c) },
		Down:    func(i int) bool { return l.env.Lanes[i].Down() },
		Timeout: l.opts.requestTimeout,
		Lapsed:  l.rules.Lapsed,
		Left:    func(c *lane.Call) { l.crowd.Left(c.Request.Keys, c.Reply.Called) },
		Waiter:  l.crowd.ID, Unclaimed: l.crowd.Unclaimed,
	}
	if l.observer != nil {
		c.Observe = l.observePending
	}
	return janitor.New(c)
}
