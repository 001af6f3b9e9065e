package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestDoRunsUnderARenewedLockAndReleasesIt(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		err := l.Do(t.Context(), key, 10*time.Second, func(ctx context.Context) error {
			settle(time.Minute)
			if n := having(masters); n != 3 {
				t.Errorf("%d masters have the key after six ttls", n)
			}
			return ctx.Err()
		})
		must(t, err)
		settle(time.Millisecond)
		if n := having(masters); n != 0 {
			t.Errorf("%d masters have the key afterwards", n)
		}
	})
}

func TestDoValueReturnsTheValueOfItsFunctionAndTheError(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		mine := errors.New("mine")
		for _, c := range []struct {
			value     int
			err, want error
			loses     bool // and the function does not notice
		}{{42, nil, nil, false}, {7, mine, mine, false}, {8, nil, redlock.ErrNotHeld, true}} {
			n, err := redlock.DoValue(t.Context(), l, key, longTTL, func(context.Context) (int, error) {
				if c.loses {
					masters.Lose(key)
				}
				return c.value, c.err
			})
			if is(t, err, c.want); n != c.value || errors.Is(err, redlock.ErrNotHeld) != c.loses {
				t.Errorf("DoValue returned %d, %v, want %d", n, err, c.value)
			}
			settle(time.Second)
		}
		fine := func(context.Context) (int, error) { return 9, nil }
		_, err := redlock.DoValue[int](t.Context(), l, key, longTTL, nil)
		is(t, err, redlock.ErrInvalid)
		_, err = redlock.DoValue(t.Context(), nil, key, longTTL, fine)
		is(t, err, redlock.ErrInvalid)
		masters.Hold(key)
		n, err := redlock.DoValue(t.Context(), l, key, longTTL, fine, redlock.MaxAttempts(1))
		if is(t, err, redlock.ErrHeld); n != 0 {
			t.Errorf("DoValue while another owner has the lock returned %d", n)
		}
	})
}

func TestDoReleasesWhenItsFunctionPanics(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("the panic was swallowed")
				}
			}()
			_ = l.Do(t.Context(), key, longTTL, func(context.Context) error {
				panic("mine") //nolint:forbidigo // what is tested
			})
		}()
		settle(time.Millisecond)
		if n := having(masters); n != 0 {
			t.Errorf("%d masters have the key", n)
		}
	})
}

func TestDoReportsALostLock(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		mine := errors.New("mine")
		err := l.Do(t.Context(), key, 10*time.Second, func(ctx context.Context) error {
			masters.Lose(key)
			masters.Hold(key)
			<-ctx.Done()
			is(t, context.Cause(ctx), redlock.ErrNotHeld)
			return mine
		})
		is(t, err, mine)
		is(t, err, redlock.ErrNotHeld)
		err = l.Do(t.Context(), key, 10*time.Second, func(context.Context) error { return nil }, redlock.MaxAttempts(1))
		onlyIs(t, err, redlock.ErrHeld)
	})
}

func TestDoEndsWithItsCallersContextAndStillReleases(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		ctx, cancel := context.WithCancel(t.Context())
		err := l.Do(ctx, key, longTTL, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		onlyIs(t, err, context.Canceled)
		settle(time.Millisecond)
		if n := having(masters); n != 0 {
			t.Errorf("%d masters have the key", n)
		}
	})
}

// That too few masters confirm the release is no failure of the work, which is done.
func TestDoSucceedsWhenTheReleaseIsNotConfirmed(t *testing.T) {
	withLocker(t, 3, func(t *testing.T, masters fakes, l *redlock.Locker) {
		must(t, l.Do(t.Context(), key, longTTL, func(context.Context) error {
			masters.Behave(on(single.Release, act{Lost: true}))
			return nil
		}))
		masters.Behave(nil)
	})
}

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
