package redlock

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/single"
)

// Locker takes locks by majority over a fixed set of masters. It is safe for concurrent use; a program needs one for
// each set of masters. Close it to end its goroutines.
type Locker struct {
	opts      Options
	clock     Clock
	names     []string
	masters   []Master
	lanes     []*single.Lane
	owned     []Master       // closed with the Locker
	preparers []Preparer     // those among masters
	fanOut    errgroup.Group // every goroutine that carries requests to a master
	agenda    *agenda
	broom     *janitor
	pace      pace
	lines     *lines
	ear       *ear
	id        string        // under which it waits in arrival queues
	tokens    atomic.Uint64 // the greatest fencing token seen
	retention retention     // whose counters need not be prolonged
	spare     sync.Pool     // of *waiter

	closing chan struct{} // closed when Close begins

	mu     sync.Mutex
	closed bool
	first  *Lock         // of the list of those whose keys may still be on some master
	empty  chan struct{} // closed when closing and the list has become empty
}

// New makes a Locker over masters, in any number; an odd one makes the best of them, and one is a quorum of its own.
// They stay the caller's to close, after the Locker. Nothing is sent yet. The error says which argument is bad.
func New(masters []Master, opts Options) (*Locker, error) {
	if err := checkMasters(masters); err != nil {
		return nil, err
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Locker{
		opts:    opts,
		clock:   opts.Clock,
		masters: slices.Clone(masters),
		lines:   newLines(len(masters)),
		id:      newOwner(),
		closing: make(chan struct{}),
		empty:   make(chan struct{}),
	}
	for _, m := range masters {
		l.names = append(l.names, m.Name())
		if p, ok := m.(Preparer); ok {
			l.preparers = append(l.preparers, p)
		}
		l.lanes = append(l.lanes, single.NewLane(m, l.fanOut.Go))
	}
	l.agenda = newAgenda(opts.Clock)
	l.broom = newJanitor(l)
	l.ear = newEar(l)
	return l, nil
}

// Acquire takes the lock on key for ttl, and waits for it until ctx is done. Goroutines of one Locker that wait for
// the same key get it in the order in which they came.
//
// ttl is how long the masters keep the key if nobody extends or releases it; the holder may rely on a little less,
// [Lock.Until]. It is counted in whole milliseconds. The returned Lock is not renewed unless [AutoRenew] says so.
//
// On error the lock is not held, and whatever the attempt left on a master is being removed in the background. The
// error matches [ErrHeld], [ErrNoQuorum] or [ErrExpired] by what the last round ended with and, when ctx ended the
// wait, also ctx's error; [ErrInvalid] for bad arguments; [ErrClosed].
func (l *Locker) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...Option) (*Lock, error) {
	s, err := l.ask(ctx, key, ttl, opts)
	if err != nil {
		return nil, err
	}
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
	if s.maxAttempts > 1 || s.every > 0 {
		return nil, invalid("MaxAttempts or RetryEvery for a single attempt")
	}
	start := l.clock.Now()
	lock, err := l.attempt(ctx, s, nil)
	l.observeReturn(s, start, 1, err)
	return lock, err
}

// Do acquires the lock, runs fn while renewing it, and releases it, also when fn panics. fn's context is cancelled,
// with a cause, when the lock is lost or ctx is done; fn should return soon after. Do returns fn's error, joined with
// [ErrNotHeld] if the lock was lost before fn had returned: what fn did may then have overlapped with another holder.
func (l *Locker) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...Option) (err error) {
	if fn == nil {
		return invalid("nil function")
	}
	lock, err := l.Acquire(ctx, key, ttl, append([]Option{AutoRenew()}, opts...)...)
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

// attempt runs one acquisition round, as somebody's waiter or on its own (nil).
func (l *Locker) attempt(ctx context.Context, s *spec, t *ticket) (*Lock, error) {
	k, err := l.newLock(s)
	if err != nil {
		return nil, err
	}
	request := k.request(single.Request{Op: single.Acquire, TTL: s.ttl, Fence: s.fenced})
	if s.fenced {
		request.Token, request.Retained = l.propose(), l.retention.has(k.Key(), l.clock.Now())
	}
	if t != nil {
		k.waiter, k.placed = l.id, !t.fresh
		request.Waiter, request.Waited, request.Polite = l.id, t.tried-t.since, l.lines.contended(t)
	}
	k.longest = s.ttl
	r, err := k.run(ctx, request)
	if err != nil {
		err = fmt.Errorf("redlock: acquire %q: %w", k.Key(), err)
	} else {
		err = k.acquired(ctx, r)
	}
	if err != nil {
		k.finish(errAbandoned, nil)
		return nil, err
	}
	return k, nil
}

// newOwner returns 128 bits from the system's cryptographic generator.
func newOwner() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b[:])
}

// Close ends the Locker as a server is shut down: new acquisitions and waiting ones fail with [ErrClosed], then it
// waits until every lock has been released or has lapsed and every master has confirmed, or the keys' ttls are over.
// When ctx is done first, the Contexts of the locks still held are cancelled, nothing is renewed or asked any more, and
// the error says what was left on the masters to lapse by itself. Afterwards no goroutine of the Locker is left,
// except one inside a Master that does not return. Close again returns nil.
func (l *Locker) Close(ctx context.Context) error {
	if ctx == nil {
		return invalid("nil context")
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.closing)
	if l.first == nil {
		close(l.empty)
	}
	l.mu.Unlock()

	err := l.drain(ctx)
	l.ear.shut()
	l.agenda.close()
	l.broom.close()
	for _, lane := range l.lanes {
		lane.Close()
	}
	l.awaitLanes()
	return errors.Join(err, closeAll(l.owned))
}

// awaitLanes waits for the lanes' goroutines. A request in flight ends by its deadline, so this is short; a Master that
// does not keep deadlines is not waited for any longer.
func (l *Locker) awaitLanes() {
	ended := make(chan struct{})
	go func() {
		_ = l.fanOut.Wait() // lanes return no errors
		close(ended)
	}()
	patience := make(chan struct{})
	defer l.clock.AfterFunc(2*max(l.opts.RequestTimeout, maxRequestTimeout), func() { close(patience) }).Stop()
	select {
	case <-ended:
	case <-patience:
	}
}

// drain waits for the locks and the janitor, and says what is left when ctx does not let it.
func (l *Locker) drain(ctx context.Context) error {
	select {
	case <-l.empty:
	case <-ctx.Done():
	}
	left := l.abandonAll()
	swept := l.broom.drain(ctx)
	if left == 0 && swept == 0 {
		return nil
	}
	return fmt.Errorf("redlock: close: %d locks not released and %d keys not confirmed removed lapse by their ttl: %w",
		left, swept, ended(ctx))
}

// abandonAll ends the locks that are left without asking the masters, and returns how many were held.
func (l *Locker) abandonAll() int {
	l.mu.Lock()
	var locks []*Lock
	for k := l.first; k != nil; k = k.next {
		locks = append(locks, k)
	}
	l.mu.Unlock()
	for _, k := range locks {
		k.abandon()
	}
	return len(locks)
}

// enroll notes that k may have keys on masters from now on.
func (l *Locker) enroll(k *Lock) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if k.next = l.first; k.next != nil {
		k.next.prev = k
	}
	l.first = k
	return nil
}

// forget notes that k has no keys left, or only such as the janitor looks after.
func (l *Locker) forget(k *Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case k.prev != nil:
		k.prev.next = k.next
	case l.first == k:
		l.first = k.next
	default:
		return // it was forgotten before
	}
	if k.next != nil {
		k.next.prev = k.prev
	}
	k.next, k.prev = nil, nil
	if l.closed && l.first == nil {
		select {
		case <-l.empty:
		default:
			close(l.empty)
		}
	}
}
