package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/limiter"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/retention"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/internal/subscription"
	"github.com/seed-624411e5/redlock/internal/waitqueue"
	"github.com/seed-624411e5/redlock/single"
)

// Locker takes locks by majority over a fixed set of masters. It is safe for concurrent use; a program needs one for
// each set of masters. Close it to end its goroutines.
type Locker struct {
	opts      Options
	clock     Clock
	names     []string
	masters   []Master
	sets      electorates // that decide
	lanes     []*lane.Lane
	owned     []Master           // closed with the Locker
	preparers []Preparer         // those among masters
	fanOut    errgroup.Group     // every goroutine that carries requests to a master
	schedule  *schedule.Schedule // of what holds have to do
	renewals  *limiter.Limiter[*Lock]
	janitor   *janitor.Janitor
	observer  *observer        // nil without Options.Observer
	queue     *waitqueue.Queue // of the waiters of this Locker
	current   currency         // that the masters know no configuration two generations newer
	id        string           // under which it waits in arrival queues
	tokens    atomic.Uint64    // the greatest fencing token observed
	retained  retention.Keys   // whose counters need not be prolonged
	spare     sync.Pool        // of *roundWait

	subscription *subscription.Subscription
	busy         atomic.Int64 // acquisitions and departures that Close waits for
	unreached    atomic.Int64 // the start of the first round that reached no quorum, since the last that did; 0: none

	closing chan struct{}  // closed when Close begins; nil in a Locker that New has not made
	ended   chan struct{}  // closed when Close has returned
	checks  sync.WaitGroup // goroutines that look at a master

	mu     sync.Mutex
	closed bool
	first  *Lock         // of the list of those whose keys may still be on some master
	empty  chan struct{} // closed when closing, the list has become empty and nobody is busy
}

// New makes a Locker over masters, in any number; an odd one makes the best of them, and one is a quorum of its own.
// They stay the caller's to close, after the Locker. Nothing is sent yet. The error says which argument is bad.
func New(masters []Master, opts Options) (*Locker, error) {
	if err := checkMasters(masters); err != nil {
		return nil, err
	}
	return newLocker(masters, electorates{newElectorate("", everyMaster>>(maxMasters-len(masters)))}, opts)
}

func newLocker(masters []Master, sets electorates, opts Options) (*Locker, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.RestartGuard, err = checkGuard(masters, opts.RestartGuard); err != nil {
		return nil, err
	}
	l := &Locker{
		opts:    opts,
		clock:   opts.Clock,
		masters: slices.Clone(masters),
		sets:    sets,
		id:      owner.Random(),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		empty:   make(chan struct{}),
	}
	if err := l.checkGuardedTTL(); err != nil {
		return nil, err
	}
	for _, m := range masters {
		l.names = append(l.names, m.Name())
		if p, ok := m.(Preparer); ok {
			l.preparers = append(l.preparers, p)
		}
		l.lanes = append(l.lanes, lane.New(m, l.fanOut.Go))
	}
	if opts.Observer != nil {
		l.observer = newObserver(opts.Observer)
	}
	l.schedule = schedule.New(l.clock.Now, l.after)
	l.renewals = limiter.New(maxRenewing, (*Lock).renew)
	l.janitor = newJanitor(l)
	l.queue = waitqueue.New(l.sets.majority, func(d time.Duration, f func()) { l.clock.AfterFunc(d, f) })
	l.subscription = newSubscription(l)
	return l, nil
}

// after is the clock's AfterFunc as packages take it that know no Clock.
func (l *Locker) after(d time.Duration, f func()) schedule.Timer { return l.clock.AfterFunc(d, f) }

// newJanitor makes what asks masters again for releases that they have not confirmed.
func newJanitor(l *Locker) *janitor.Janitor {
	c := janitor.Config{
		Masters: len(l.lanes),
		Now:     l.clock.Now,
		After:   l.after,
		Send:    func(c *lane.Call) { l.lanes[c.Index].Send(c) },
		Down:    func(i int) bool { return l.lanes[i].Down() },
		Timeout: l.opts.requestTimeout,
		Lapsed: func(now, ttl time.Duration) time.Duration {
			return lapsed(now, ttl, l.opts.DriftFactor)
		},
	}
	if l.observer != nil {
		c.Observe = l.observePending
	}
	return janitor.New(c)
}

// newSubscription makes what listens for notifications: releases name on the Locker's own channel the key that it may take.
func newSubscription(l *Locker) *subscription.Subscription {
	masters := make([]subscription.Listen, len(l.masters))
	for i, m := range l.masters {
		if m, ok := m.(Listener); ok {
			masters[i] = func(ready func(), notified func(key string)) (stop func()) {
				return m.Listen(single.ChannelPrefix+l.id, ready, notified)
			}
		}
	}
	return subscription.New(subscription.Config{
		Masters: masters, Majority: l.sets.majority, After: l.after, Ready: l.queue.Look,
		Notified: func(key string, master int) { l.queue.Notify(key, master, l.reserve()/2) },
	})
}

// Acquire takes the lock on key for ttl, and waits for it until ctx is done. Goroutines of one Locker that wait for
// the same key get it in the order in which they came; docs/waiting.md has the exceptions.
//
// ttl is how long the masters keep the key if nobody extends or releases it; the holder may rely on a little less,
// [Lock.Until]. It is counted in whole milliseconds. The returned Lock is not renewed unless [AutoRenew] says so.
//
// On error the lock is not held, and whatever the attempt left on a master is being removed in the background. The
// error matches [ErrHeld], [ErrNoQuorum] or [ErrExpired] by what the last round ended with and, when ctx ended the
// wait, also ctx's error; [ErrMisconfigured] where waiting can't help; [ErrInvalid] for bad arguments; [ErrClosed].
func (l *Locker) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	s, err := l.ask(ctx, key, ttl, opts)
	if err != nil {
		return nil, err
	}
	l.busy.Add(1)
	defer l.notBusy()
	start := l.clock.Now()
	lock, rounds, err := l.wait(ctx, s, start)
	l.observeReturn(s, start, rounds, err)
	return lock, err
}

// TryAcquire is Acquire with a single round: it takes the lock now or says why not, within the request timeout.
func (l *Locker) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	s, err := l.ask(ctx, key, ttl, opts)
	if err != nil {
		return nil, err
	}
	if s.maxAttempts > 1 || s.every > 0 || s.maxOutage > 0 {
		return nil, invalid("MaxAttempts, RetryEvery or MaxOutage with TryAcquire, which is a single attempt")
	}
	l.busy.Add(1)
	defer l.notBusy()
	start := l.clock.Now()
	lock, err := l.attempt(ctx, s, nil)
	l.observeReturn(s, start, 1, err)
	return lock, err
}

// Do acquires the lock, runs fn while renewing it, and releases it, also when fn panics. fn's context is cancelled,
// with a cause, when the lock is lost or ctx is done; fn should return soon after. A lock that can't be renewed leaves it a
// tenth of the ttl for that, two seconds at the most, before others can have the lock; [Grace] leaves more.
//
// An error of the acquisition is returned as it is, and fn was not called. Otherwise Do returns fn's error, joined with
// [ErrNotHeld] if the lock was lost before fn had returned: what fn did may then have overlapped with another holder. So Do
// can fail though fn returned nil; what fn has done stays done. That masters have not confirmed the release is no error of
// Do's: fn was protected, and the key left on them is removed or lapses as [Lock.Release] says for ErrNoQuorum. A caller that
// has to know uses Acquire and Release.
func (l *Locker) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...Option) (err error) {
	if fn == nil {
		return invalid("nil function")
	}
	lock, err := l.Acquire(ctx, key, ttl, append([]Option{AutoRenew(), forWork}, opts...)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lostBefore(lock.Release(ctx))) }()
	return fn(lock.Context(ctx))
}

// lostBefore keeps of a release's error what tells that the lock was lost. That too few masters confirmed is no
// concern of Do's caller: its work is done, and the janitor goes on.
func lostBefore(err error) error {
	if errors.Is(err, ErrNotHeld) {
		return err
	}
	return nil
}

// check refuses a Locker that New has not made. l may be nil.
func (l *Locker) check() error {
	if l == nil || l.closing == nil {
		return invalid("a Locker must be made by New or Dial")
	}
	return nil
}

// ask checks an acquisition's arguments before anything is sent.
func (l *Locker) ask(ctx context.Context, key string, ttl time.Duration, opts []Option) (*spec, error) {
	if ctx == nil {
		return nil, invalid("nil context")
	}
	s, err := l.newSpec(key, ttl, opts)
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx, l); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", key, ended(ctx))
	}
	return s, nil
}

// attempt runs one acquisition round: for w, which waits, or without waiting (nil).
func (l *Locker) attempt(ctx context.Context, s *spec, w *waiting) (*Lock, error) {
	if l.isClosing() {
		return nil, ErrClosed
	}
	asOf, err := l.awaitCurrent(ctx, s.timeout, &s.sent, l.closing)
	if err != nil {
		return nil, err
	}
	k, err := l.newLock(s)
	if err != nil {
		return nil, err
	}
	request := k.request(single.Request{Op: single.Acquire, TTL: s.ttl, Fence: s.fenced})
	if s.fenced {
		request.Token, request.Retained = l.propose(), l.retained.Has(k.Key(), l.clock.Now())
	}
	k.began = l.clock.Now()
	if w != nil {
		w.latest, k.waiterID = k, l.id
		k.mayBeQueued, request.Polite = l.queue.Begin(&w.entry, k.began)
		request.Waiter, request.Waited = l.id, k.began-w.since
	}
	k.longest, k.asOf = s.ttl, asOf
	r, err := k.run(ctx, request)
	if err != nil {
		err = fmt.Errorf("redlock: acquire %q: %w", k.Key(), err)
	} else {
		err = k.acquired(ctx, r)
	}
	l.reached(err, k.began)
	if err != nil {
		k.finish(errAbandoned, nil)
		return nil, err
	}
	return k, nil
}
