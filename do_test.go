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

func TestDoReturnsItsFunctionsError(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		mine := errors.New("mine")
		err := l.Do(t.Context(), key, longTTL, func(context.Context) error { return mine })
		is(t, err, mine)
		isNot(t, err, redlock.ErrNotHeld)
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
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.locker(t, redlock.Options{})
		must(t, l.Do(t.Context(), key, longTTL, func(context.Context) error {
			masters.behave(on(single.Release, act{lost: true}))
			return nil
		}))
		masters.behave(nil)
	})
}
