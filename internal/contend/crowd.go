package contend

import (
	"math"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/generation"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/subscription"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// Crowd has the waiters of one Locker: their order among themselves, how they learn of releases, and how they let
// others go first. For the masters they are one waiter, with one name. It is safe for concurrent use.
type Crowd struct {
	*waitqueue.Queue
	Subscription *subscription.Subscription
	Generations  *generation.Currency // whether the configuration is current
	Outage       Outage               // of a quorum of masters
	ID           string               // the name in the masters' queues

	env         *hold.Env
	closing     <-chan struct{}
	complaining complaining // masters, and since when
	announced   complaints  // that announcements of generations met
}

// Config has what a Crowd needs of its Locker. Rules, clock, lanes and registry of Env are set; New sets Host and
// Janitor.
type Config struct {
	Env        *hold.Env
	ID         string
	Masters    []subscription.Listen                    // nil for one that can't notify
	Closing    <-chan struct{}                          // closed when Close begins
	Generation uint64                                   // of the configuration; 0: it has none
	Timeout    func(ttl time.Duration) time.Duration    // of a request for a lock with this ttl
	Pending    func(janitor.Kind, int, *single.Request) // observes the janitor; nil without an observer
}

// New returns a Crowd.
func New(o *Config) *Crowd {
	env := o.Env
	c := &Crowd{ID: o.ID, env: env, closing: o.Closing}
	c.Queue = waitqueue.New(env.Majority, func(d time.Duration, f func()) { env.After(d, f) })
	c.Subscription = subscription.New(subscription.Config{
		Masters: o.Masters, Majority: env.Majority, After: env.After, Ready: c.Look, Notified: c.notified,
	})
	c.Generations = newGenerations(c, o.Generation, o.Timeout(math.MaxInt64))
	env.Host = c
	env.Janitor = janitor.New(janitor.Config{
		Masters: len(env.Lanes), Now: env.Now, After: env.After, Timeout: o.Timeout, Lapsed: env.Lapsed,
		Observe: o.Pending, Waiter: c.ID, Unclaimed: c.Unclaimed,
		Send: func(call *lane.Call) { env.Lanes[call.Index].Send(call) },
		Down: func(master int) bool { return env.Lanes[master].Down() },
		Left: func(call *lane.Call) { c.Left(call.Request.Keys, call.Reply.Called) },
	})
	return c
}

// isClosed reports that the channel is closed.
func isClosed(closing <-chan struct{}) bool {
	select {
	case <-closing:
		return true
	default:
		return false
	}
}

// Offer implements [hold.Host]: it passes the lock on to the first waiting goroutine that it fits.
func (c *Crowd) Offer(o *hold.Offer) bool {
	if isClosed(c.closing) || c.Generations.State().Newer != nil {
		return false
	}
	waiter, entry := c.Take(o.Key(), o.Now, func(waiter any) bool {
		return o.Fits(&waiter.(*waiting).of.Terms) //nolint:forcetypeassert // no other type waits
	})
	if entry == nil {
		return false
	}
	w := waiter.(*waiting) //nolint:forcetypeassert // likewise
	w.heir = w.locks.Succeed(o)
	o.Taken = entry
	return true
}

// Passed implements [hold.Host]: it wakes the goroutine that was passed the lock.
func (c *Crowd) Passed(o *hold.Offer) {
	c.Pass(o.Taken.(*waitqueue.Entry)) //nolint:forcetypeassert // Offer has set it
}

// notified receives the messages of a master.
func (c *Crowd) notified(message string, master int) {
	if key, kept := strings.CutPrefix(message, single.KeptPrefix); kept {
		c.LookAt([]string{key}) // for how long
		return
	}
	c.Notify(message, master, c.Reserve()/2)
}

// NotPassed implements [hold.Host]: it tells the waiters behind a lock that it will not be passed on.
func (c *Crowd) NotPassed(key string, ends time.Duration) { c.Remind(key, ends) }

// Leaving implements [hold.Host].
func (c *Crowd) Leaving(e hold.Exit) (unclaimed []string, reserve time.Duration) {
	if e.Window > 0 {
		c.giveWay(e) // before waiters here are notified
	}
	// for keys that are not returned the position is inherited by those who wait here
	return c.HandOver(e.Keys), c.Reserve()
}

// breathShare: after the window, the process leaves the key alone for the window divided by breathShare.
const breathShare = 20

// giveWay makes the waiters of this process leave the key to the waiter that the next release notifies. The next
// waiter in line gets a reminder to try when the window ends. Without giveWay its request would follow the release at
// once, and have the key for another window. Clients of other libraries are in no queue, and find a free key only
// when they ask: for such clients the key stays free for a moment after each window.
func (c *Crowd) giveWay(e hold.Exit) {
	now := c.env.Now()
	ahead := now
	if now >= e.Ends {
		ahead += e.Window / breathShare
	}
	c.Rival(e.Keys, ahead, max(ahead, now+c.politeness()))
}

// Gone implements [hold.Host]. A key that is kept for a while is not free yet. Otherwise Gone wakes the first waiter in
// the queue, unless the masters have notified a waiter, which may be in another process. Then this Locker is polite for
// a while, and the masters notify its waiters like all others.
func (c *Crowd) Gone(g hold.Gone) {
	switch {
	case g.Kept:
		c.LookAt(g.Keys) // for how long
	case g.Notified && !g.Left:
		c.outrun(g.Keys)
	case g.Notified:
		c.Left(g.Keys, true)
	default:
		c.Wake(g.Keys)
	}
}

// outrun records that a release has notified a waiter for keys, which may be in another process.
func (c *Crowd) outrun(keys []string) {
	now := c.env.Now()
	c.Rival(keys, now+c.politeness(), now+subscription.Linger)
}

// Left makes the waiters of this process try again: a release has taken this Locker out of masters' queues for
// keys, and may have notified another waiter. If the janitor repeats a release, it comes long after these waiters
// began to wait. Then no other message tells them that the key is free.
func (c *Crowd) Left(keys []string, notified bool) {
	if notified {
		c.outrun(keys)
	}
	c.LookAt(keys)
}

const (
	// minReserve and maxReserve bound how long a release reserves the key for the waiter it notifies. That is about
	// the time until the notification arrives and the acquisition comes back.
	minReserve = 5 * time.Millisecond
	maxReserve = 500 * time.Millisecond
)

// Reserve returns the time for which a release keeps the key for the waiter it notifies.
func (c *Crowd) Reserve() time.Duration {
	return min(minReserve+3*c.Slowest(), maxReserve)
}

// politeness returns the time for which this Locker leaves the masters to a waiter that a release has notified. The
// notification and the waiter's acquisition take about two round trips.
func (c *Crowd) politeness() time.Duration { return time.Millisecond + 2*c.Slowest() }

// Slowest returns the distance of the slowest master.
func (c *Crowd) Slowest() time.Duration {
	var slowest time.Duration
	for _, lane := range c.env.Lanes {
		slowest = max(slowest, lane.RTT())
	}
	return slowest
}
