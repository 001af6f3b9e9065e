// Package redlock takes distributed locks by majority over independent Redis masters: the Redlock algorithm
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
//
// A program makes one Locker, when it starts, and closes it when it ends:
//
//	masters := []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"}
//	locker, err := redlock.Dial(ctx, masters, redlock.Options{})
//	if err != nil {
//		return err
//	}
//	defer locker.Close(shutdown) // a context that bounds how long it waits for locks and masters
//
// Do acquires the lock, renews it, runs the work and releases the lock. It stops the work when the lock is lost, and
// returns an error if the lock was lost before the work was done:
//
//	err = locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
//		return ship(ctx, 42)
//	})
//
// Without Do, the error of Release says whether the lock was lost:
//
//	lock, err := locker.Acquire(ctx, "orders:42", 10*time.Second)
//	if err != nil {
//		return err
//	}
//	err = ship(lock.Context(ctx), 42)
//	return errors.Join(err, lock.Release(ctx)) // ErrNotHeld: another process may have had the lock too
//
// # What is guaranteed
//
// At most one Lock of a key is held at any time, where held means: between the return of Acquire and [Lock.Until].
// This assumes that
//
//   - the clocks of masters and clients run at rates that differ by less than the drift allowance
//     ([Options].DriftFactor), and are not set while locks are held;
//   - a master that restarts has its data, or does not vote until every lock it may have forgotten has expired;
//   - the masters are independent: none is a replica of another, no two are the same server.
//
// A lock is available while a majority of masters can be reached. If a holder dies, the key is free after at most its
// ttl.
//
// # What is not guaranteed
//
// A holder may act after its validity has ended: when it is paused (by its garbage collector, its hypervisor, a
// debugger), or when its requests reach the resource late. No lock service can prevent that. [Lock.Done] closes a
// [Grace] before validity ends, as far as timers are on time. Run work that must not overlap under [Lock.Context].
// Ask [Lock.Err] before a step that can't be undone. Where the resource can compare numbers, send it fencing tokens.
//
// Where the assumptions above do not hold, two holders are possible.
//
// # Concurrency
//
// All types are safe for concurrent use. Every acquisition returns a new Lock, which is never reused.
package redlock

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/electing"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/internal/subscription"
	"github.com/seed-624411e5/redlock/single"
)

// Locker takes locks by majority over a fixed set of masters. It is safe for concurrent use; a program needs one for
// each set of masters. Close it to end its goroutines.
type Locker struct {
	opts      Options
	clock     Clock
	names     []string
	masters   []Master
	owned     []Master       // closed with the Locker
	preparers []Preparer     // those among masters
	fanOut    errgroup.Group // every goroutine that carries requests to a master
	env       hold.Env       // of its holds
	observer  *observer      // nil without Options.Observer
	crowd     *contend.Crowd // its waiters

	closing chan struct{}  // closed when Close begins; nil in a Locker that New has not made
	ended   chan struct{}  // closed when Close has returned
	checks  sync.WaitGroup // goroutines that look at a master
}

// New makes a Locker over 1 to 64 masters. An odd number is best; a single master is a quorum by itself. The caller
// closes the masters, after the Locker. New sends nothing. The error matches [ErrInvalid] and says what is bad.
func New(masters []Master, opts Options) (*Locker, error) {
	if err := checkMasters(masters); err != nil {
		return nil, err
	}
	return newLocker(masters, electorates{newElectorate("", hold.EveryMaster>>(maxMasters-len(masters)))}, opts)
}

func newLocker(masters []Master, sets electorates, opts Options) (*Locker, error) {
	if opts.Clock == nil {
		opts.Clock = clockOf(masters)
	}
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
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	l.env.Rules, l.env.Sets = &rules{sets, drift(opts.DriftFactor)}, sets
	if err := l.checkGuardedTTL(); err != nil {
		return nil, err
	}
	for _, m := range masters {
		l.names = append(l.names, m.Name())
		if p, ok := m.(Preparer); ok {
			l.preparers = append(l.preparers, p)
		}
		l.env.Lanes = append(l.env.Lanes, lane.New(m, l.fanOut.Go, l.after))
	}
	if opts.Observer != nil {
		l.observer = newObserver(opts.Observer)
	}
	l.initEnv()
	return l, nil
}

// initEnv prepares the common part of the Locker's holds, and its waiters.
func (l *Locker) initEnv() {
	e, id := &l.env, owner.Random()
	e.Prepare, e.Now, e.After, e.Jitter, e.Identity = l.prepare, l.clock.Now, l.after, l.opts.Jitter, l.opts.Identity
	e.Schedule, e.Renewals = schedule.New(l.clock.Now, l.after), hold.NewRenewals()
	e.Registry = hold.NewRegistry[*hold.Hold](l.closing)
	e.Tokens.Wall = l.clock.Wall
	c := contend.Config{
		ID: id, Env: e, Masters: l.listeners(id), Closing: l.closing, Generation: l.opts.Generation,
		Timeout: l.opts.requestTimeout,
	}
	if l.observer != nil {
		e.Watch, c.Pending = watch{l}, l.observePending
	}
	l.crowd = contend.New(&c)
}

// prepare lets masters encode a request before it is sent.
func (l *Locker) prepare(r *single.Request) {
	for _, p := range l.preparers {
		p.Prepare(r)
	}
}

// after is the clock's AfterFunc as packages take it that know no Clock.
func (l *Locker) after(d time.Duration, f func()) schedule.Timer { return l.clock.AfterFunc(d, f) }

// listeners subscribe to the masters' messages on the Locker's own channel, where a release names the key that the
// Locker may take. That of a master that can't notify is nil.
func (l *Locker) listeners(id string) []subscription.Listen {
	masters := make([]subscription.Listen, len(l.masters))
	for i, m := range l.masters {
		if m, ok := m.(Listener); ok {
			masters[i] = func(ready func(), notified func(key string)) (stop func()) {
				return m.Listen(single.ChannelPrefix+id, ready, notified)
			}
		}
	}
	return masters
}

// Acquire takes the lock on key for ttl, and waits for it until ctx is done. Goroutines of one Locker that wait for
// the same key get it in the order in which they came; goroutines with other kinds of lock ([Shared], [Reentrant],
// [AndKeys]) may overtake each other.
//
// The masters keep the key for ttl, counted in whole milliseconds, unless the holder extends or releases it. The
// holder may rely on a little less, [Lock.Until]. The returned Lock is renewed only with [AutoRenew].
//
// On error the lock is not held, and the Locker removes in the background all keys that the attempt left on masters.
// The error matches [ErrHeld], [ErrNoQuorum] or [ErrExpired], as the last round ended, or [ErrContended] with
// [MaxAttempts]. If ctx ended the wait, it also matches ctx's error. Other errors match [ErrMisconfigured] (waiting
// can't help), [ErrOutdated] (a newer configuration is announced), [ErrAlreadyHeld] (ctx is of a lock on the key),
// [ErrInvalid] (bad arguments) or [ErrClosed].
func (l *Locker) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	s, err := l.ask(ctx, key, ttl, opts)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, s, l.crowd.Wait)
}

// acquire makes an acquisition by wait.
func (l *Locker) acquire(ctx context.Context, s *spec,
	wait func(context.Context, *contend.Acquisition, contend.Locks) (*hold.Hold, int, *contend.Failure),
) (*Lock, error) {
	l.env.Registry.Begin()
	defer l.env.Registry.Done()
	start := l.clock.Now()
	h, rounds, f := wait(ctx, &s.Acquisition, (*acquisition)(s))
	lock, err := s.result(ctx, h, f)
	l.observeReturn(single.Acquire, s, start, rounds, err)
	return lock, err
}

// TryAcquire takes the lock now or says why not. The error matches [ErrHeld] if another owner has the lock.
//
// Callers that come at the same moment may split the masters' votes, so that no caller wins. Then each repeats its
// round after a random pause, until one gets the lock. A round begins within [Options].RequestTimeout and takes no
// longer than that. If the vote stays split, the error matches [ErrContended] and not ErrHeld; trying again helps.
// Rounds are also repeated for up to a second while the first connections to masters are being made.
// All other errors, and the state after an error, are as with Acquire.
func (l *Locker) TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	s, err := l.ask(ctx, key, ttl, opts)
	if err != nil {
		return nil, err
	}
	if s.MaxAttempts > 1 || s.Every > 0 || s.MaxOutage > 0 {
		return nil, invalid("MaxAttempts, RetryEvery or MaxOutage with TryAcquire, which is a single attempt")
	}
	return l.acquire(ctx, s, l.crowd.Once)
}

// Validate returns the error with which an acquisition with these arguments would be refused before anything is sent;
// it matches [ErrInvalid]. It sends nothing.
func (l *Locker) Validate(ctx context.Context, key string, ttl time.Duration, opts ...Option) error {
	_, err := l.newSpec(key, ttl, under(ctx, opts))
	return err
}

// under returns the options of an acquisition under ctx.
func under(ctx context.Context, opts []Option) []Option {
	if elects, endures := electing.Of(ctx); elects {
		return append([]Option{forTerm(endures)}, opts...)
	}
	return opts
}

// Closing returns a channel that is closed when Close begins. It is nil for a Locker that [New] has not made.
func (l *Locker) Closing() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.closing
}

// isClosing reports that Close has begun.
func (l *Locker) isClosing() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
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
	s, err := l.newSpec(key, ttl, under(ctx, opts))
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx, l); err != nil {
		return nil, err
	}
	if l.observer != nil {
		s.values = context.WithoutCancel(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("redlock: acquire %s: %w", brief(key), cause.Of(ctx))
	}
	return s, nil
}

// Format implements [fmt.Formatter]: by any verb a Locker is printed as its masters and whether it is closed.
func (l *Locker) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, l.LogValue().String()) // a State keeps what is written
}

// LogValue implements [slog.LogValuer].
func (l *Locker) LogValue() slog.Value {
	if l.check() != nil {
		return slog.StringValue("no locker")
	}
	name := "locker over " + strings.Join(l.names, ", ")
	if l.isClosing() {
		name += ", closed"
	}
	return slog.StringValue(name)
}
