package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestDoRunsUnderARenewedLockAndReleasesIt(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		err := l.Do(t.Context(), Key, 10*time.Second, func(ctx context.Context) error {
			Settle(time.Minute)
			if n := Having(masters); n != 3 {
				t.Errorf("%d masters have the key after six ttls", n)
			}
			return ctx.Err()
		})
		Must(t, err)
		Settle(time.Millisecond)
		if n := Having(masters); n != 0 {
			t.Errorf("%d masters have the key afterwards", n)
		}
	})
}

func TestDoValueReturnsTheValueOfItsFunctionAndTheError(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		mine := errors.New("mine")
		for _, c := range []struct {
			value     int
			err, want error
			loses     bool // and the function does not notice
		}{{42, nil, nil, false}, {7, mine, mine, false}, {8, nil, redlock.ErrNotHeld, true}} {
			n, err := redlock.DoValue(t.Context(), l, Key, LongTTL, func(context.Context) (int, error) {
				if c.loses {
					masters.Lose(Key)
				}
				return c.value, c.err
			})
			if Is(t, err, c.want); n != c.value || errors.Is(err, redlock.ErrNotHeld) != c.loses {
				t.Errorf("DoValue returned %d, %v, want %d", n, err, c.value)
			}
			Settle(time.Second)
		}
		fine := func(context.Context) (int, error) { return 9, nil }
		_, err := redlock.DoValue[int](t.Context(), l, Key, LongTTL, nil)
		Is(t, err, redlock.ErrInvalid)
		_, err = redlock.DoValue(t.Context(), nil, Key, LongTTL, fine)
		Is(t, err, redlock.ErrInvalid)
		masters.Hold(Key)
		n, err := redlock.DoValue(t.Context(), l, Key, LongTTL, fine, redlock.MaxAttempts(1))
		if Is(t, err, redlock.ErrHeld); n != 0 {
			t.Errorf("DoValue while another owner has the lock returned %d", n)
		}
	})
}

func TestDoReleasesWhenItsFunctionPanics(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("the panic was swallowed")
				}
			}()
			_ = l.Do(t.Context(), Key, LongTTL, func(context.Context) error {
				panic("mine") //nolint:forbidigo // what is tested
			})
		}()
		Settle(time.Millisecond)
		if n := Having(masters); n != 0 {
			t.Errorf("%d masters have the key", n)
		}
	})
}

func TestDoReportsALostLock(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		mine := errors.New("mine")
		err := l.Do(t.Context(), Key, 10*time.Second, func(ctx context.Context) error {
			masters.Lose(Key)
			masters.Hold(Key)
			<-ctx.Done()
			Is(t, context.Cause(ctx), redlock.ErrNotHeld)
			return mine
		})
		Is(t, err, mine)
		Is(t, err, redlock.ErrNotHeld)
		err = l.Do(t.Context(), Key, 10*time.Second, func(context.Context) error { return nil }, redlock.MaxAttempts(1))
		OnlyIs(t, err, redlock.ErrHeld)
	})
}

func TestDoEndsWithItsCallersContextAndStillReleases(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		ctx, cancel := context.WithCancel(t.Context())
		err := l.Do(ctx, Key, LongTTL, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		OnlyIs(t, err, context.Canceled)
		Settle(time.Millisecond)
		if n := Having(masters); n != 0 {
			t.Errorf("%d masters have the key", n)
		}
	})
}

// That too few masters confirm the release is no failure of the work, which is done.
func TestDoSucceedsWhenTheReleaseIsNotConfirmed(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		Must(t, l.Do(t.Context(), Key, LongTTL, func(context.Context) error {
			masters.Behave(On(single.Release, Act{Lost: true}))
			return nil
		}))
		masters.Behave(nil)
	})
}

func TestHazard112TheLockIsFoundInItsContext(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		if lock, ok := redlock.FromContext(t.Context()); lock != nil || ok {
			t.Errorf("%v is found in a context of no lock", lock)
		}
		if lock, ok := redlock.FromContext(nil); lock != nil || ok { //nolint:staticcheck // it is what is tested
			t.Errorf("%v is found in no context", lock)
		}
		err := l.Do(t.Context(), Key, LongTTL, func(ctx context.Context) error {
			//nolint:revive,staticcheck // a context that descends from it
			outer, ok := redlock.FromContext(context.WithValue(ctx, "any", 1))
			if !ok || outer.Token() == 0 || outer.Remaining() <= 0 || outer.Key() != Key {
				t.Errorf("%v, %t", outer, ok)
			}
			Must(t, outer.Extend(ctx, LongTTL))
			return l.TryDo(ctx, "inner", LongTTL, func(ctx context.Context) error {
				if inner, ok := redlock.FromContext(ctx); !ok || inner.Key() != "inner" {
					t.Errorf("under two locks %v is found, want the innermost", inner)
				}
				return nil
			})
		}, redlock.Fenced())
		Must(t, err)
		lock := Acquire(t, l, LongTTL)
		if found, ok := redlock.FromContext(lock.Context(t.Context())); found != lock || !ok {
			t.Errorf("%v, %t, want %v", found, ok, lock)
		}
		Must(t, lock.Release(t.Context()))
	})
}

func TestHazard112TryDoDoesNotWait(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		ran := 0
		work := func(context.Context) error { ran++; return nil }
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		began := time.Now()
		OnlyIs(t, l.TryDo(t.Context(), Key, LongTTL, work), redlock.ErrHeld)
		if took := time.Since(began); ran != 0 || took != 0 {
			t.Errorf("a held lock: the function ran %d times, after %v", ran, took)
		}
		Must(t, lock.Release(t.Context()))
		Settle(time.Second) // all masters have released it
		Must(t, l.TryDo(t.Context(), Key, LongTTL, work))
		Settle(time.Second)
		if ran != 1 || Having(masters) != 0 {
			t.Errorf("a free lock: the function ran %d times, and %d masters have the key", ran, Having(masters))
		}
		OnlyIs(t, l.TryDo(t.Context(), Key, LongTTL, work, redlock.RetryEvery(time.Second)), redlock.ErrInvalid)
		OnlyIs(t, l.TryDo(t.Context(), Key, LongTTL, nil), redlock.ErrInvalid)
	})
}
