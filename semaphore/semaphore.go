// Package semaphore lets at most n holders in at a time: a semaphore is n slots, each a lock of its own, and a permit is the lock
// of one of them.
//
//	s, err := semaphore.New(locker, "report-runners", 3)
//	…
//	permit, err := s.Acquire(ctx, 30*time.Second, redlock.AutoRenew())
//	if err != nil {
//		return err
//	}
//	defer permit.Release(ctx)
//
// Everything that a lock promises holds of each slot: it has one holder at a time, a holder that dies frees it after its ttl, a fenced
// permit's tokens grow from one holder of the slot to the next. Tokens of different slots have no order between them, so a resource
// that checks tokens has to check them by the slot ([Permit.Slot]).
//
// # Why not count on every master
//
// A semaphore that lets each master give n permits, and takes a majority of masters for one, lets more than n in. Of five masters with
// two permits each there are ten to give, and a holder needs three: three holders share nine of them out, {a,b,c}, {a,d,e}, {b,c,d}. Two
// majorities share a master, but it takes n+1 holders on one and the same master to be noticed. TestCountingOnEachMasterLetsTooManyIn has
// the numbers for other sizes. With slots two holders of one slot would have to share a master that has granted both.
//
// chaos/examples/semaphore runs both on real masters under faults and counts their holders; docs/chaos.md says how.
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

// MaxPermits bounds n. Who waits does so for every slot, so that it gets whichever is free first.
const MaxPermits = 256

// Locker takes the locks: a [redlock.Locker], or a Locker of package sharded.
type Locker interface {
	Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
	TryAcquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
}

// Semaphore lets at most n holders in at a time. Make it with [New]. It is safe for concurrent use, holds nothing by itself and
// needs no closing.
type Semaphore struct {
	locker Locker
	name   string
	slots  []string
}

// Permit is the lock of one slot: what is said of [redlock.Lock] is true of it.
type Permit struct {
	*redlock.Lock
	// Slot is which one, from 0 to n-1.
	Slot int
}

// New makes a semaphore of n permits, from 1 to [MaxPermits]. All processes that share it have to agree on the name, on n and on the
// masters: with a greater n one lets more holders in than the others count on. A smaller n holds once the holders of the slots beyond it
// have ended. Slot i is the lock of the key name:slot:i. The error matches [redlock.ErrInvalid].
func New(locker Locker, name string, n int) (*Semaphore, error) {
	switch {
	case locker == nil:
		return nil, fmt.Errorf("%w: semaphore %q: nil Locker", redlock.ErrInvalid, name)
	case n < 1 || n > MaxPermits:
		return nil, fmt.Errorf("%w: semaphore %q: %d permits, and there must be from 1 to %d", redlock.ErrInvalid, name, n, MaxPermits)
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

// TryAcquire takes a permit if a slot is free. It asks for one slot after the other, beginning anywhere, a round trip each. The error
// matches [redlock.ErrHeld] if all are held, and [redlock.ErrContended] if others contend for one of them and nobody was seen to hold it.
// Otherwise the error is what kept it from knowing, as of [redlock.Locker.TryAcquire].
func (s *Semaphore) TryAcquire(ctx context.Context, ttl time.Duration, opts ...redlock.Option) (*Permit, error) {
	if err := s.check(opts); err != nil {
		return nil, err
	}
	return s.try(ctx, ttl, opts)
}

// try asks for one slot after the other.
func (s *Semaphore) try(ctx context.Context, ttl time.Duration, opts []redlock.Option) (*Permit, error) {
	var held, contended error
	begin := rand.IntN(len(s.slots)) // so that those who come at the same time do not all want the same slot
	for i := range s.slots {
		slot := (begin + i) % len(s.slots)
		lock, err := s.locker.TryAcquire(ctx, s.slots[slot], ttl, opts...)
		switch {
		case err == nil:
			return &Permit{lock, slot}, nil
		case errors.Is(err, redlock.ErrHeld):
			held = err
		case errors.Is(err, redlock.ErrContended):
			contended = err
		default:
			return nil, fmt.Errorf("semaphore %q: %w", s.name, err)
		}
	}
	if contended != nil {
		return nil, fmt.Errorf("semaphore %q: no permit was had: %w", s.name, contended)
	}
	return nil, fmt.Errorf("semaphore %q: all %d permits are held: %w", s.name, len(s.slots), held)
}

// Acquire takes a permit for ttl, and waits for one until ctx is done. It asks for one slot after the other, as TryAcquire does. If all
// are held it waits for every slot at once, in the order of those who wait for it, and takes the first that it gets; should it get
// another one at the same moment, that is given back, at once also with [redlock.MinHold]. opts are those of [redlock.Locker.Acquire], for each slot, but for
// the ones that make a lock shared, exclusive, reentrant or one of several keys.
//
// On error no permit is held. The error matches [redlock.ErrHeld], [redlock.ErrContended] or [redlock.ErrNoQuorum] by what kept it from a slot and,
// when ctx ended the wait, ctx's error; [redlock.ErrMisconfigured] where waiting can't help; [redlock.ErrInvalid]; [redlock.ErrClosed].
func (s *Semaphore) Acquire(ctx context.Context, ttl time.Duration, opts ...redlock.Option) (*Permit, error) {
	if err := s.check(opts); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fmt.Errorf("%w: semaphore %q: nil context", redlock.ErrInvalid, s.name)
	}
	// An option that only a wait can have is an error of the attempt. What is invalid in any case, the wait says.
	permit, err := s.try(ctx, ttl, opts)
	if err == nil || ctx.Err() != nil || final(err) && !errors.Is(err, redlock.ErrInvalid) {
		return permit, err
	}
	permit, waited := s.wait(ctx, ttl, opts)
	switch {
	case waited == nil:
		return permit, nil
	case ctx.Err() != nil && says(err) && !says(waited): // it ended before it had asked once more
		return nil, fmt.Errorf("%w; the wait for one: %w", err, waited)
	default:
		return nil, fmt.Errorf("semaphore %q: %w", s.name, waited)
	}
}

// says reports that err tells what kept somebody from a slot.
func says(err error) bool {
	return errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrContended) || errors.Is(err, redlock.ErrNoQuorum)
}

// wait waits for every slot at once.
func (s *Semaphore) wait(ctx context.Context, ttl time.Duration, opts []redlock.Option) (permit *Permit, err error) {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		permit *Permit
		err    error
	}
	results := make(chan result)
	for slot, key := range s.slots {
		go func() {
			lock, err := s.locker.Acquire(waits, key, ttl, opts...)
			results <- result{&Permit{lock, slot}, err}
		}()
	}
	for range s.slots { // every wait ends soon after one of them has ended with a permit, or for good
		switch r := <-results; {
		case r.err == nil && permit == nil:
			permit = r.permit
			cancel()
		case r.err == nil: // its Locker removes what the release leaves behind
			go func() { _ = r.permit.Release(surplus.Release(context.WithoutCancel(ctx))) }()
		case final(r.err):
			err = r.err
			cancel() // the other slots are on the same masters
		case err == nil:
			err = r.err
		}
	}
	if permit != nil {
		return permit, nil
	}
	return nil, err
}

// final reports that err, of one slot, would come again, and be that of the others, too.
func final(err error) bool {
	return slices.ContainsFunc(
		[]error{redlock.ErrMisconfigured, redlock.ErrOutdated, redlock.ErrClosed, redlock.ErrInvalid},
		func(target error) bool { return errors.Is(err, target) },
	)
}

// check refuses options with which a slot would not have one holder at a time, or not be one.
func (s *Semaphore) check(opts []redlock.Option) error {
	for _, all := range [][]redlock.Option{opts, append(slices.Clone(opts), redlock.Fenced())} {
		if _, err := redlock.KeysOf(s.slots[0], all...); err != nil {
			return fmt.Errorf("semaphore %q: a permit is a plain lock of one key: %w", s.name, err)
		}
	}
	return nil
}
