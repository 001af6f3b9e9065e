package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// Whoever has a permit may take another under its Context: the own slot is in use, as others are.
func TestAPermitUnderThePermitsContextTakesAnotherSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		s := permits(t, masters.Locker(t, redlock.Options{}), 4)
		first, err := s.TryAcquire(t.Context(), time.Minute)
		must(t, err)
		for range 20 { // each begins with any slot
			second, err := s.TryAcquire(first.Context(t.Context()), time.Minute)
			must(t, err)
			must(t, second.Release(t.Context()))
		}
		must(t, first.Release(t.Context()))
	})
}

func TestAWaitUnderThePermitsContextSaysThatTheOthersAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		s := permits(t, masters.Locker(t, redlock.Options{}), 2)
		first, err := s.TryAcquire(t.Context(), time.Minute)
		must(t, err)
		other, err := permits(t, masters.Locker(t, redlock.Options{}), 2).TryAcquire(t.Context(), time.Minute)
		must(t, err)
		_, err = s.Acquire(first.Context(within(t, 3*time.Second)), time.Minute)
		locktest.Is(t, err, redlock.ErrHeld)
		locktest.Is(t, err, context.DeadlineExceeded)
		must(t, other.Release(t.Context()))
		must(t, first.Release(t.Context()))
	})
}

func TestTheOnlyPermitUnderItsContextIsAlreadyHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		s := permits(t, masters.Locker(t, redlock.Options{}), 1)
		only, err := s.TryAcquire(t.Context(), time.Minute)
		must(t, err)
		_, err = s.TryAcquire(only.Context(t.Context()), time.Minute)
		locktest.Is(t, err, redlock.ErrAlreadyHeld)
		must(t, only.Release(t.Context()))
	})
}
