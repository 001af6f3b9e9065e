package hazards_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// A machine was suspended. When it wakes up, the holder knows that its lock has expired, before any timer has fired.
func TestHazard24AfterASuspensionEveryMethodReportsTheLossOfTheLock(t *testing.T) {
	asks := map[string]func(lock *redlock.Lock, ctx context.Context) bool{ // whether the lock counts as held
		"Err":         func(lock *redlock.Lock, _ context.Context) bool { return lock.Err() == nil },
		"Remaining":   func(lock *redlock.Lock, _ context.Context) bool { return lock.Remaining() > 0 },
		"Until":       func(lock *redlock.Lock, _ context.Context) bool { return lock.Until().After(time.Now()) },
		"Context.Err": func(_ *redlock.Lock, ctx context.Context) bool { return ctx.Err() == nil },
		"Extend": func(lock *redlock.Lock, _ context.Context) bool {
			return lock.Extend(context.Background(), LongTTL) == nil
		},
		"Release": func(lock *redlock.Lock, _ context.Context) bool {
			return lock.Release(context.Background()) == nil
		},
	}
	for name, held := range asks {
		for _, inTime := range []bool{false, true} { // which is the control
			Bubble(t, 3, func(t *testing.T, masters Fakes) {
				machine := NewClock()
				lock := Acquire(t, masters.Locker(t, redlock.Options{Clock: machine}), 10*time.Second,
					redlock.AutoRenew())
				ctx := lock.Context(t.Context())
				Settle(time.Second)
				machine.Suspend(map[bool]time.Duration{false: 9 * time.Second, true: 7 * time.Second}[inTime])
				if held(lock, ctx) != inTime {
					t.Errorf("%s: after a suspension that ends in time: %t, the lock counts as held: %t", name, inTime,
						!inTime)
				}
				if err := lock.Release(t.Context()); inTime && name != "Release" {
					Must(t, err)
				}
			})
		}
	}
}

// A suspension is noticed within a second of the resumption, even if no method is called.
func TestHazard24DoneClosesSoonAfterASuspension(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		machine := NewClock()
		lock := Acquire(t, masters.Locker(t, redlock.Options{Clock: machine}), LongTTL)
		ctx := lock.Context(t.Context())
		machine.Suspend(time.Hour)
		resumed := time.Now()
		<-lock.Done()
		<-ctx.Done()
		if took := time.Since(resumed); took > time.Second {
			t.Errorf("Done closed %v after the resumption", took)
		}
		Is(t, context.Cause(ctx), redlock.ErrNotHeld)
	})
}

// If the wall clocks of a minority of masters jump, no lock ends early and no waiter is kept out.
func TestHazard25AMinoritysClockMayJump(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		l, other := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})
		jump := func(d time.Duration) {
			for _, m := range masters[:2] {
				m.Mu.Lock()
				m.Skew += d
				m.Mu.Unlock()
			}
		}
		lock := Acquire(t, l, 30*time.Second)
		Settle(time.Millisecond)
		jump(time.Minute) // there the key has expired
		_, err := other.TryAcquire(t.Context(), Key, 30*time.Second)
		Is(t, err, redlock.ErrHeld)
		Settle(time.Millisecond) // what it got there is released
		Must(t, lock.Extend(t.Context(), 30*time.Second))
		Settle(time.Millisecond) // a quorum decides, the others follow
		if n := masters.Holders(lock.Owner()); n != 5 {
			t.Errorf("after the extension %d masters have the key, want 5", n)
		}
		jump(-time.Hour) // there the key is kept for an hour
		<-lock.Done()
		Settle(time.Second)
		again, err := other.TryAcquire(t.Context(), Key, 30*time.Second)
		Must(t, err)
		Must(t, again.Release(t.Context()))
	})
}

// Only the clock decides whether a lock is held, whatever keys the masters still have.
func TestHazard26ValidityIsAskedOfTheClockNotOfTheMasters(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		machine := NewClock()
		lock := Acquire(t, masters.Locker(t, redlock.Options{Clock: machine}), 10*time.Second)
		Settle(time.Millisecond)
		before := masters.Asked()
		if lock.Err() != nil || lock.Remaining() == 0 {
			t.Errorf("a fresh lock: %v, %v", lock.Err(), lock.Remaining())
		}
		machine.Suspend(9899 * time.Millisecond) // past the bound, and the masters still have the key
		if n := masters.Holders(lock.Owner()); n != 3 {
			t.Fatalf("%d masters have the key: this test shows nothing", n)
		}
		if lock.Remaining() != 0 || lock.Until().After(time.Now()) {
			t.Errorf("past its bound the lock remains for %v", lock.Remaining())
		}
		Is(t, lock.Err(), redlock.ErrNotHeld)
		Settle(time.Second)
		released := 0
		for _, m := range masters {
			released += m.Count(single.Release)
		}
		if n := masters.Asked() - before; n != released {
			t.Errorf("the masters were asked %d times, and %d of them to release", n, released)
		}
	})
}

// The longest time there is, counted from now, is no moment before now.
func TestAHugeMaxHoldIsNoLimit(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		Settle(time.Minute)
		lock := Acquire(t, l, 10*time.Second, redlock.AutoRenew(), redlock.MaxHold(math.MaxInt64))
		Settle(time.Hour)
		if err := lock.Err(); err != nil || lock.Remaining() > 10*time.Second {
			t.Errorf("after an hour: %v, %v left", err, lock.Remaining())
		}
		Must(t, lock.Release(t.Context()))
	})
}
