// Package semaphore lets at most n holders in at a time. A semaphore is n slots, each a separate lock, and a permit
// is the lock of one slot.
//
//	s, err := semaphore.New(locker, "report-runners", 3)
//	…
//	permit, err := s.Acquire(ctx, 30*time.Second, redlock.AutoRenew())
//	if err != nil {
//		return err
//	}
//	err = work(permit.Context(ctx), permit.Slot)
//	return errors.Join(err, permit.Release(ctx))
//
// Each slot has the guarantees of a lock. It has one holder at a time, and is free a ttl after its holder died. The
// tokens of fenced permits grow from one holder of the slot to the next. Tokens of different slots have no order, so a
// resource must check tokens per slot ([Permit.Slot]).
//
// # Why not count on every master
//
// If each master gave n permits, and a permit took a majority of masters, more than n holders could get in. Five
// masters with two permits each have ten to give, and a holder needs three: three holders share nine of the ten,
// {a,b,c}, {a,d,e}, {b,c,d}. Two majorities share a master, but only n+1 holders on the same master would be noticed.
// TestCountingOnEachMasterLetsTooManyIn has the numbers for other sizes. With slots, two holders of one slot would
// need a master that has granted both.
//
// chaos/examples/semaphore runs both on real masters under faults and counts their holders.
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/surplus"
)

// MaxPermits is the greatest n. A waiter waits for every slot at once and gets the first free one.
const MaxPermits = 256

// Locker takes the locks: a [redlock.Locker], or a Locker of package sharded. A type that wraps the latter needs its
// method Locker, too: it tells which slots have the same masters.
type Locker interface {
	Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
	TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
}

// Semaphore lets at most n holders in at a time. Make it with [New]. It is safe for concurrent use, holds nothing by
// itself and needs no closing.
type Semaphore struct {
	locker Locker
	name   string
	slots  []string
}

// Permit is the lock of one slot. It has the methods and guarantees of [redlock.Lock].
type Permit struct {
	*redlock.Lock
	// Slot is the number of the slot, from 0 to n-1.
	Slot int
}

// New returns a semaphore of n permits, from 1 to [MaxPermits]. All its processes must use the same name, n and
// masters. A process with a greater n lets in more holders than the others expect. After a change to a smaller n, the
// limit holds when the holders of the slots beyond it have ended. Slot i is the lock on the key name:slot:i. The error
// matches [redlock.ErrInvalid].
func New(locker Locker, name string, n int) (*Semaphore, error) {
	switch {
	case locker == nil:
		return nil, fmt.Errorf("%w: semaphore %q: nil Locker", redlock.ErrInvalid, name)
	case n < 1 || n > MaxPermits:
		return nil, fmt.Errorf("%w: semaphore %q: %d permits, and there must be from 1 to %d", redlock.ErrInvalid, name,
			n, MaxPermits)
	case name == "":
		return nil, fmt.Errorf("%w: semaphore without a name", redlock.ErrInvalid)
	}
	s := &Semaphore{locker: locker, name: name, slots: make([]string, n)}
	for i := range s.slots {
		s.slots[i] = name + ":slot:" + strconv.Itoa(i)
	}
	if _, err := redlock.KeysOf(s.slots[n-1]); err != nil {
		return nil, fmt.Errorf("semaphore %q: %w", name, err)
	}
	return s, nil
}

// Permits is n.
func (s *Semaphore) Permits() int { return len(s.slots) }

// TryAcquire takes a permit if a slot is free. It asks for one slot after the other, beginning anywhere, a round trip
// each. The error matches [redlock.ErrHeld] if all are held. It matches [redlock.ErrContended] if others contend for
// a slot without a known holder. If a request fails in another way, as [redlock.Locker.TryAcquire] says, the other
// slots on the same masters are not asked for; the error is that one if no slot on other masters is free. Under the
// Context of a permit, the slot of that permit counts as held.
func (s *Semaphore) TryAcquire(ctx context.Context, ttl time.Duration, opts ...redlock.Option) (*Permit, error) {
	if err := s.check(opts); err != nil {
		return nil, err
	}
	return s.try(ctx, ttl, opts)
}

// try asks for one slot after the other.
func (s *Semaphore) try(ctx context.Context, ttl time.Duration, opts []redlock.Option) (*Permit, error) {
	var held, contended, own, failed error
	failing := make(map[*redlock.Locker]bool) // groups of masters; to ask them once more would cost a timeout each time
	begin := rand.IntN(len(s.slots))          // so that simultaneous callers do not all want the same slot
	for i := range s.slots {
		slot := (begin + i) % len(s.slots)
		group := s.groupOf(slot)
		if failing[group] {
			continue
		}
		lock, err := s.locker.TryAcquire(ctx, s.slots[slot], ttl, opts...)
		switch {
		case err == nil:
			return &Permit{lock, slot}, nil
		case errors.Is(err, redlock.ErrHeld):
			held = err
		case errors.Is(err, redlock.ErrContended):
			contended = err
		case errors.Is(err, redlock.ErrAlreadyHeld): // ctx belongs to a permit
			own = err
		default:
			failed, failing[group] = err, true
		}
	}
	switch {
	case failed != nil:
		return nil, fmt.Errorf("semaphore %q: %w", s.name, failed)
	case contended != nil:
		return nil, fmt.Errorf("semaphore %q: no permit was granted: %w", s.name, contended)
	case held != nil:
		return nil, fmt.Errorf("semaphore %q: all %d permits are held: %w", s.name, len(s.slots), held)
	default:
		return nil, fmt.Errorf("semaphore %q: %w", s.name, own)
	}
}

// grouped is a Locker with groups of masters, as a sharded one is.
type grouped interface {
	Locker(key string) *redlock.Locker
}

// groupOf returns the Locker of the slot's group of masters; it is nil if all slots are on the same masters.
func (s *Semaphore) groupOf(slot int) *redlock.Locker {
	if l, ok := s.locker.(grouped); ok {
		return l.Locker(s.slots[slot])
	}
	return nil
}

// Acquire takes a permit for ttl, and waits for one until ctx is done. First it tries one slot after the other, as
// TryAcquire does. If all are held, it waits for every slot at once, in each slot's order of waiters, and takes the
// first that it gets. If it gets another slot at the same moment, it gives that back at once, also with
// [redlock.MinHold]. opts apply to each slot. They are options of [redlock.Locker.Acquire] except those for locks
// that are shared, exclusive, reentrant or of several keys.
//
// On error no permit is held. The error matches [redlock.ErrHeld], [redlock.ErrContended] or [redlock.ErrNoQuorum], as
// the slots failed, and also ctx's error if ctx ended the wait. Other errors match [redlock.ErrMisconfigured] (masters
// complained for [redlock.MendTime]), [redlock.ErrOutdated], [redlock.ErrAlreadyHeld] (ctx is of a permit),
// [redlock.ErrInvalid] or [redlock.ErrClosed].
func (s *Semaphore) Acquire(ctx context.Context, ttl time.Duration, opts ...redlock.Option) (*Permit, error) {
	if err := s.check(opts); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fmt.Errorf("%w: semaphore %q: nil context", redlock.ErrInvalid, s.name)
	}
	// If an option needs a wait, the attempt refuses it. The wait itself refuses options that are always invalid.
	permit, err := s.try(ctx, ttl, opts)
	if err == nil || ctx.Err() != nil {
		return permit, err
	}
	permit, waited := s.wait(ctx, ttl, opts)
	switch {
	case waited == nil:
		return permit, nil
	case ctx.Err() != nil && says(err) && !says(waited): // it ended before another attempt
		return nil, fmt.Errorf("%w; the wait for one: %w", err, waited)
	default:
		return nil, fmt.Errorf("semaphore %q: %w", s.name, waited)
	}
}

// says reports whether err tells why no slot was free.
func says(err error) bool {
	return errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrContended) ||
		errors.Is(err, redlock.ErrNoQuorum)
}

// wait waits for every slot at once.
func (s *Semaphore) wait(ctx context.Context, ttl time.Duration, opts []redlock.Option) (permit *Permit, err error) {
	var cut error // of a wait that ctx has ended
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		permit *Permit
		err    error
	}
	results := make(chan result)
	ends := make(map[*redlock.Locker][]context.CancelFunc) // of the waits for slots on the same masters
	for slot, key := range s.slots {
		ctx, end := context.WithCancel(waits)
		group := s.groupOf(slot)
		ends[group] = append(ends[group], end)
		go func() {
			lock, err := s.locker.Acquire(ctx, key, ttl, opts...)
			results <- result{&Permit{lock, slot}, err}
		}()
	}
	for range s.slots { // all waits end soon after one ends with a permit
		switch r := <-results; {
		case r.err == nil && permit == nil:
			permit = r.permit
			cancel()
		case r.err == nil: // the slot's Locker removes the rest of the release
			go func() { _ = r.permit.Release(surplus.Release(context.WithoutCancel(ctx))) }()
		case final(r.err):
			err = r.err
			for _, end := range ends[s.groupOf(r.permit.Slot)] {
				end()
			}
		case ctx.Err() != nil && errors.Is(r.err, ctx.Err()):
			if cut == nil || says(r.err) && !says(cut) {
				cut = r.err
			}
		case err == nil,
			errors.Is(err, redlock.ErrMisconfigured), // masters may complain of one slot's key alone
			errors.Is(err, redlock.ErrAlreadyHeld):   // ctx belongs to a permit, and the other slots say more
			err = r.err
		}
	}
	switch {
	case permit != nil:
		return permit, nil
	case cut == nil:
		return nil, err
	case err == nil:
		return nil, cut
	default:
		return nil, fmt.Errorf("%w; other slots: %w", cut, err)
	}
}

// final reports whether err, from one slot, would be the same on every attempt and for every slot on the same masters.
func final(err error) bool {
	return slices.ContainsFunc(
		[]error{redlock.ErrOutdated, redlock.ErrClosed, redlock.ErrInvalid},
		func(target error) bool { return errors.Is(err, target) },
	)
}

// check refuses options that would allow two holders of a slot or make the slot another kind of lock.
func (s *Semaphore) check(opts []redlock.Option) error {
	for _, all := range [][]redlock.Option{opts, append(slices.Clone(opts), redlock.Fenced())} {
		if _, err := redlock.KeysOf(s.slots[0], all...); err != nil {
			return fmt.Errorf("semaphore %q: a permit is a plain lock of one key: %w", s.name, err)
		}
	}
	return nil
}
