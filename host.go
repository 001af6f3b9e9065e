package redlock

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/limiter"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
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
	e.Renewals = limiter.New(hold.MaxRenewing, (*hold.Hold).Renew)
	id := owner.Random()
	l.crowd = contend.NewCrowd(id, e, l.listeners(id))
	e.Host = &host{l.crowd, l}
	e.Janitor = newJanitor(l)
}

// Current implements [hold.Host].
func (w *host) Current() (asOf time.Duration, fresh bool) {
	known, _ := w.locker.current.Ask()
	return known.AsOf, known.Fresh
}

// NotRenewed implements [hold.Host].
func (w *host) NotRenewed(h *hold.Hold) {
	l := w.locker
	if err := l.outdated(l.current.State().Newer); err != nil {
		l.observer.tell(l, lockOf(h).spec, Event{Kind: EventExtend, Op: opNames[single.Extend], Err: err})
	}
}

// Offer implements [hold.Host]: it passes the lock on to the first waiting goroutine that it fits.
func (w *host) Offer(o *hold.Offer) bool {
	if l := w.locker; l.isClosing() || l.current.State().Newer != nil {
		return false
	}
	waiter, entry := w.Take(o.Key(), o.Now, func(waiter any) bool {
		return o.Fits(&waiter.(*waiting).spec.Terms) //nolint:forcetypeassert // no other type waits
	})
	if entry == nil {
		return false
	}
	heir := waiter.(*waiting) //nolint:forcetypeassert // likewise
	next := &Lock{locker: heir.locker, spec: heir.spec, began: o.Now}
	if o.To(&next.hold, (*handle)(next), &heir.spec.Terms) {
		heir.passed = next
	}
	o.Taken = entry
	return true
}

// Passed implements [hold.Host]: it wakes the goroutine that was passed the lock.
func (w *host) Passed(o *hold.Offer) {
	h, held := o.Held()
	w.locker.observer.tell(w.locker, lockOf(h).spec,
		Event{Kind: EventPass, Op: opNames[single.Release], Held: true, HeldFor: held})
	w.Queue.Pass(o.Taken.(*waitqueue.Entry)) //nolint:forcetypeassert // Offer has set it
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
