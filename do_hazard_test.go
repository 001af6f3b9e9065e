package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
)

func TestHazard112TheLockIsFoundInItsContext(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		if lock, ok := redlock.FromContext(t.Context()); lock != nil || ok {
			t.Errorf("%v is found in a context of no lock", lock)
		}
		if lock, ok := redlock.FromContext(nil); lock != nil || ok { //nolint:staticcheck // it is what is tested
			t.Errorf("%v is found in no context", lock)
		}
		err := l.Do(t.Context(), key, longTTL, func(ctx context.Context) error {
			//nolint:revive,staticcheck // a context that descends from it
			outer, ok := redlock.FromContext(context.WithValue(ctx, "any", 1))
			if !ok || outer.Token() == 0 || outer.Remaining() <= 0 || outer.Key() != key {
				t.Errorf("%v, %t", outer, ok)
			}
			must(t, outer.Extend(ctx, longTTL))
			return l.TryDo(ctx, "inner", longTTL, func(ctx context.Context) error {
				if inner, ok := redlock.FromContext(ctx); !ok || inner.Key() != "inner" {
					t.Errorf("under two locks %v is found, want the innermost", inner)
				}
				return nil
			})
		}, redlock.Fenced())
		must(t, err)
		lock := acquire(t, l, longTTL)
		if found, ok := redlock.FromContext(lock.Context(t.Context())); found != lock || !ok {
			t.Errorf("%v, %t, want %v", found, ok, lock)
		}
		must(t, lock.Release(t.Context()))
	})
}

func TestHazard112TryDoDoesNotWait(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		ran := 0
		work := func(context.Context) error { ran++; return nil }
		lock := acquire(t, masters.Locker(t, redlock.Options{}), longTTL)
		began := time.Now()
		onlyIs(t, l.TryDo(t.Context(), key, longTTL, work), redlock.ErrHeld)
		if took := time.Since(began); ran != 0 || took != 0 {
			t.Errorf("a held lock: the function ran %d times, after %v", ran, took)
		}
		must(t, lock.Release(t.Context()))
		settle(time.Second) // all masters have released it
		must(t, l.TryDo(t.Context(), key, longTTL, work))
		settle(time.Second)
		if ran != 1 || having(masters) != 0 {
			t.Errorf("a free lock: the function ran %d times, and %d masters have the key", ran, having(masters))
		}
		onlyIs(t, l.TryDo(t.Context(), key, longTTL, work, redlock.RetryEvery(time.Second)), redlock.ErrInvalid)
		onlyIs(t, l.TryDo(t.Context(), key, longTTL, nil), redlock.ErrInvalid)
	})
}
