package redlock

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/limiter"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// host is a Locker as its holds know it.
type host Locker

// initEnv prepares what the holds of the Locker share.
func (l *Locker) initEnv() {
	e := &l.env
	e.Rules, e.Host = &rules{l.sets, l.opts.DriftFactor}, (*host)(l)
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
	e.Janitor = newJanitor(l)
}

// Current implements [hold.Host].
func (l *host) Current() (asOf time.Duration, fresh bool) {
	known, _ := l.current.Ask()
	return known.AsOf, known.Fresh
}

// NotRenewed implements [hold.Host].
func (l *host) NotRenewed(h *hold.Hold) {
	if err := (*Locker)(l).outdated(l.current.State().Newer); err != nil {
		l.observer.tell((*Locker)(l), lockOf(h).spec, Event{Kind: EventExtend, Op: opNames[single.Extend], Err: err})
	}
}

// Offer implements [hold.Host]: it passes the lock on to the first waiting goroutine for which it fits.
func (l *host) Offer(o *hold.Offer) bool {
	if (*Locker)(l).isClosing() || l.current.State().Newer != nil {
		return false
	}
	waiter, entry := l.queue.Take(o.Key(), o.Now, func(waiter any) bool {
		return o.Fits(&waiter.(*waiting).spec.Terms) //nolint:forcetypeassert // no other type waits
	})
	if entry == nil {
		return false
	}
	w := waiter.(*waiting) //nolint:forcetypeassert // likewise
	next := &Lock{locker: w.locker, spec: w.spec, began: o.Now}
	if o.To(&next.hold, (*handle)(next), &w.spec.Terms) {
		w.passed = next
	}
	o.Taken = entry
	return true
}

// Passed implements [hold.Host]: it wakes the goroutine that was passed the lock.
func (l *host) Passed(o *hold.Offer) {
	h, held := o.Held()
	l.observer.tell((*Locker)(l), lockOf(h).spec,
		Event{Kind: EventPass, Op: opNames[single.Release], Held: true, HeldFor: held})
	l.queue.Pass(o.Taken.(*waitqueue.Entry)) //nolint:forcetypeassert // Offer has set it
}

// NotPassed implements [hold.Host]: it tells the waiters behind a lock that it will not be passed on.
func (l *host) NotPassed(key string, ends time.Duration) { l.queue.Remind(key, ends) }

// Leaving implements [hold.Host].
func (l *host) Leaving(e hold.Exit) (unclaimed []string, reserve time.Duration) {
	if e.Window > 0 {
		l.giveWay(e) // before waiters here are notified
	}
	// for keys that are not returned the position is inherited by those who wait here
	return l.queue.HandOver(e.Keys), (*Locker)(l).reserve()
}

// breathShare: after the window, the process leaves the key alone for the window divided by breathShare.
const breathShare = 20

// giveWay makes the waiters of this process leave the key to the waiter that the next release notifies. The next
// waiter in line gets a reminder to try when the window ends. Without giveWay its request would follow the release at
// once, and have the key for another window. Clients of other libraries are in no queue, and find a free key only
// when they ask: for such clients the key stays free for a moment after each window.
func (l *host) giveWay(e hold.Exit) {
	now := l.clock.Now()
	ahead := now
	if now >= e.Ends {
		ahead += e.Window / breathShare
	}
	l.queue.Rival(e.Keys, ahead, max(ahead, now+(*Locker)(l).giveWay()))
}

// Gone implements [hold.Host]. A key that is kept for a while is not free yet. Otherwise Gone wakes the first waiter in
// the queue, unless the masters have notified a waiter, which may be in another process. Then this Locker is polite for
// a while, and the masters notify its waiters like all others.
func (l *host) Gone(g hold.Gone) {
	switch {
	case g.Kept:
		l.queue.LookAt(g.Keys) // for how long
	case g.Notified && !g.Left:
		(*Locker)(l).outrun(g.Keys)
	case g.Notified:
		(*Locker)(l).dequeued(g.Keys, true)
	default:
		l.queue.Wake(g.Keys)
	}
}

// Depart implements [hold.Host].
func (l *host) Depart(t *hold.Terms, keys []string, behind *hold.Hold, masters uint64) {
	(*Locker)(l).depart(t, keys, behind, masters)
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
		Lapsed: func(now, ttl time.Duration) time.Duration {
			return lapsed(now, ttl, l.opts.DriftFactor)
		},
		Left:   func(c *lane.Call) { l.dequeued(c.Request.Keys, c.Reply.Called) },
		Waiter: l.id, Unclaimed: l.queue.Unclaimed,
	}
	if l.observer != nil {
		c.Observe = l.observePending
	}
	return janitor.New(c)
}

const (
	// minReserve and maxReserve bound how long a release reserves the key for the waiter it notifies. That is about
	// the time until the notification arrives and the acquisition comes back.
	minReserve = 5 * time.Millisecond
	maxReserve = 500 * time.Millisecond
)

// reserve returns the time for which a release keeps the key for the waiter it notifies.
func (l *Locker) reserve() time.Duration {
	return min(minReserve+3*l.slowest(), maxReserve)
}

// giveWay returns the time for which this Locker leaves the masters to a waiter that a release has notified. The
// notification and the waiter's acquisition take about two round trips.
func (l *Locker) giveWay() time.Duration { return time.Millisecond + 2*l.slowest() }

// slowest returns the distance of the slowest master.
func (l *Locker) slowest() time.Duration {
	var slowest time.Duration
	for _, lane := range l.env.Lanes {
		slowest = max(slowest, lane.RTT())
	}
	return slowest
}
