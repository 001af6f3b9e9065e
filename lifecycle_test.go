package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

func TestReleasingTwiceSaysTheSameTwice(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL)
		Must(t, lock.Release(t.Context()))
		Settle(time.Second)
		before := masters.Asked()
		Must(t, lock.Release(t.Context()))
		if n := masters.Asked(); n != before {
			t.Errorf("the second release sent %d requests to the masters", n-before)
		}

		lost := Acquire(t, l, LongTTL)
		Settle(time.Millisecond)
		masters.Forget()
		first := lost.Release(t.Context())
		OnlyIs(t, first, redlock.ErrNotHeld)
		if second := lost.Release(t.Context()); second == nil || second.Error() != first.Error() {
			t.Errorf("the second release returned %v, the first returned %v", second, first)
		}
	})
}

func TestAReleasedLockIsOver(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		ctx := lock.Context(t.Context())
		if lock.Err() != nil || Over(lock) || ctx.Err() != nil {
			t.Fatalf("a lock that is held: %v, %v", lock.Err(), ctx.Err())
		}
		Must(t, lock.Release(t.Context()))
		Is(t, lock.Err(), redlock.ErrNotHeld)
		Is(t, lock.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
		Is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		Is(t, ctx.Err(), context.Canceled)
		Is(t, context.Cause(ctx), redlock.ErrNotHeld)
		now, cancel := context.WithCancel(lock.Context(t.Context())) // also of one that is made now
		defer cancel()
		select {
		case <-now.Done():
			Is(t, context.Cause(now), redlock.ErrNotHeld)
		case <-time.After(time.Hour):
			t.Error("what descends from a context that is made now goes on")
		}
		if !Over(lock) || lock.Remaining() != 0 || lock.Until().After(time.Now()) {
			t.Errorf("Done closed: %t, remaining %v, until %v", Over(lock), lock.Remaining(), lock.Until())
		}
		if lock.Key() != Key || len(lock.Keys()) != 1 || lock.Owner() == "" {
			t.Errorf("the lock has forgotten its key, keys or owner: %q, %q, %q", lock.Key(), lock.Keys(), lock.Owner())
		}
	})
}

func TestAllMethodsMayBeCalledAtOnce(t *testing.T) {
	masters := NewFakes(5)
	l := masters.Locker(t, redlock.Options{})
	for range 20 {
		lock := Acquire(t, l, LongTTL, redlock.AutoRenew())
		Concurrently(16, func(i int) {
			if i%4 == 0 {
				Is(t, lock.Release(t.Context()), nil)
			}
			// An extension that a newer one overtakes while it waits for its turn has not been confirmed.
			if err := lock.Extend(t.Context(), LongTTL); err != nil && !errors.Is(err, redlock.ErrNotHeld) &&
				!errors.Is(err, redlock.ErrNoQuorum) {
				t.Errorf("Extend: %v", err)
			}
			if lock.Remaining() == 0 && lock.Err() == nil { // in this order: it may be released between the two
				t.Error("held for no time at all")
			}
			_, _, _ = lock.Until(), lock.Context(t.Context()).Err(), Over(lock)
		})
		Is(t, lock.Err(), redlock.ErrNotHeld)
	}
	CloseLocker(t, l)
	masters.AllFree(t)
}

func TestALocksContextEndsWithItsParent(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL)
		why := errors.New("why")
		parent, cancel := context.WithCancelCause(t.Context())
		ctx := lock.Context(parent)
		cancel(why)
		<-ctx.Done()
		Is(t, context.Cause(ctx), why)
		Must(t, lock.Err())
		for _, parent := range []string{"one", "another"} { // each by its own
			of, cancel := context.WithCancelCause(t.Context())
			child := lock.Context(of)
			Must(t, child.Err())
			cancel(errors.New(parent))
			if <-child.Done(); context.Cause(child).Error() != parent {
				t.Errorf("the context for %s parent has ended by %v", parent, context.Cause(child))
			}
		}
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		defer cancelFirst()
		defer cancelSecond()
		ofFirst, ofSecond := lock.Context(first), lock.Context(second)
		cancelSecond()
		if Is(t, ofSecond.Err(), context.Canceled); ofFirst.Err() != nil {
			t.Errorf("the context for a parent that goes on: %v", ofFirst.Err())
		}
		Must(t, lock.Release(t.Context()))
	})
}

func TestExtendNeverShortensTheValidity(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, 10*time.Second)
		Must(t, lock.Extend(t.Context(), LongTTL))
		if got := lock.Remaining(); got != LongTTL-LongTTL/100-2*time.Millisecond {
			t.Errorf("after the extension held for %v", got)
		}
		until := lock.Until()
		Must(t, lock.Extend(t.Context(), 10*time.Second))
		if got := lock.Until(); !got.Equal(until) {
			t.Errorf("a shorter extension moved the bound by %v", got.Sub(until))
		}
		Must(t, lock.Release(t.Context()))
	})
}

func TestRenewalKeepsALockWithOneMasterStopped(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 5)
	l := Dial(t, servers, redlock.Options{RequestTimeout: 300 * time.Millisecond}) // a busy machine is not the point
	const ttl = 2 * time.Second
	began := time.Now()
	lock := Acquire(t, l, ttl, redlock.AutoRenew())
	Must(t, servers[1].Pause())
	redistest.Eventually(t, Promptly, func() bool {
		return lock.Err() != nil || lock.Until().Sub(began) > 3*ttl
	}, "the bound to move on by several ttls")
	Must(t, lock.Err())
	_, err := l.TryAcquire(t.Context(), Key, ttl)
	Is(t, err, redlock.ErrHeld)
	Must(t, lock.Release(t.Context()))
	Must(t, servers[1].Resume())
	redistest.Eventually(t, Promptly, func() bool { return Holders(t, servers, "") == 0 },
		"the stopped master to be cleaned up")
}

func TestCloseWaitsForHoldsAndRefusesNewOnes(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, time.Hour)
		waiter := make(chan error, 1)
		go func() {
			_, err := l.Acquire(context.Background(), Key, time.Hour)
			waiter <- err
		}()
		Settle(time.Second)
		closed := make(chan error, 1)
		go func() { closed <- l.Close(context.Background()) }()
		synctest.Wait()
		Is(t, <-waiter, redlock.ErrClosed)
		_, err := l.TryAcquire(t.Context(), "another", LongTTL)
		OnlyIs(t, err, redlock.ErrClosed)
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait for the hold: %v", err)
		case <-time.After(time.Minute):
		}
		Must(t, lock.Err())
		Must(t, lock.Extend(t.Context(), time.Hour)) // what is held works as before
		Must(t, lock.Release(t.Context()))
		Must(t, <-closed)
		Must(t, l.Close(t.Context())) // again
		masters.AllFree(t)
	})
}

func TestCloseWaitsUntilHoldsHaveLapsed(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		Acquire(t, l, 10*time.Second)
		began := time.Now()
		Must(t, l.Close(t.Context()))
		if took := time.Since(began); took > 10*time.Second || took < 9*time.Second {
			t.Errorf("Close took %v, want the life of the lock", took)
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, time.Hour, redlock.AutoRenew())
		work, end := context.WithCancel(lock.Context(t.Context()))
		defer end()
		Settle(time.Second)
		err := l.Close(Within(t, time.Second))
		Is(t, err, context.DeadlineExceeded)
		select {
		case <-work.Done():
			Is(t, context.Cause(work), redlock.ErrClosed)
		default:
			t.Error("the context of the lock is not cancelled")
		}
		Is(t, lock.Err(), redlock.ErrNotHeld)
		Is(t, lock.Err(), redlock.ErrClosed)
		Is(t, context.Cause(lock.Context(t.Context())), redlock.ErrClosed)
		Is(t, lock.Extend(t.Context(), time.Hour), redlock.ErrClosed)
		Is(t, lock.Release(t.Context()), redlock.ErrClosed)
		before := masters.Asked()
		Settle(2 * time.Hour)
		if n := masters.Asked(); n != before {
			t.Errorf("%d requests after Close", n-before)
		}
	})
}

// Close may return before an acquisition is won. Then the acquisition fails; it does not return a lock that is over.
func TestAnAcquisitionFailsWhenCloseReturnsBeforeIt(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Behave(Away(time.Second))
		l := masters.Locker(t, redlock.Options{RequestTimeout: 10 * time.Second})
		acquired := make(chan error, 1)
		go func() {
			lock, err := l.TryAcquire(context.Background(), Key, time.Hour)
			if err == nil {
				err = errors.Join(errors.New("returned a lock"), lock.Err())
			}
			acquired <- err
		}()
		Settle(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Is(t, l.Close(ctx), context.Canceled)
		err := <-acquired
		Is(t, err, redlock.ErrClosed)
		IsNot(t, err, redlock.ErrNotHeld)
	})
}

func TestCloseIsNotHeldUpByAMasterThatNeverReturns(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		stuck := make(chan struct{})
		voters := []redlock.Master{masters[0], masters[1], Deaf{Fake: masters[2], Stuck: stuck}}
		l, err := redlock.New(voters, redlock.Options{Clock: NewClock()})
		Must(t, err)
		Must(t, Acquire(t, l, 10*time.Second).Release(t.Context()))
		ctx := Within(t, time.Second)
		began := time.Now()
		Is(t, l.Close(ctx), context.DeadlineExceeded) // that master's key may be left
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		close(stuck)
	})
}

// A client of another kind may keep its own deadlines; a round does not wait for it.
func TestHazard04ARoundDoesNotWaitForAClientThatKeepsNoDeadlines(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, err := redlock.New(WrapEach(servers, func(_ int, s *redistest.Server) redlock.Master {
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{s.Addr(): s.Addr()}})
		t.Cleanup(func() { _ = ring.Close() })
		m, err := redlock.NewMaster(ring)
		Must(t, err)
		return m
	}), redlock.Options{RequestTimeout: 100 * time.Millisecond})
	Must(t, err)
	t.Cleanup(func() { CloseLocker(t, l) })
	Must(t, servers[0].Pause())
	began := time.Now()
	Must(t, Acquire(t, l, LongTTL).Release(t.Context()))
	Must(t, servers[1].Pause())
	_, err = l.TryAcquire(t.Context(), Key, LongTTL)
	Is(t, err, redlock.ErrNoQuorum)
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	Must(t, servers[0].Resume())
	Must(t, servers[1].Resume())
}

// Callers wait for an extension, and then all of them for the configuration. The next extension serves all of them.
func TestExtensionsThatWaitForTheConfigurationShareTheNextOne(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		lock := Acquire(t, l, LongTTL)
		const slow = 10 * time.Millisecond
		for _, m := range masters {
			m.SlowDown(slow)
		}
		began := time.Now()
		Concurrently(8, func(i int) {
			calls, ttl := 0, LongTTL+time.Duration(i)*time.Second
			Must(t, lock.ExtendAsOf(ttl, func(context.Context) (time.Duration, error) {
				if calls++; calls > 1 {
					<-time.After(time.Millisecond) // until each of them is here
				}
				return time.Since(began) + time.Hour, nil
			}))
		})
		if took := time.Since(began); took > 3*slow {
			t.Errorf("8 extensions took %v, and each master answers after %v", took, slow)
		}
		if want := began.Add(LongTTL + 6*time.Second); lock.Until().Before(want) {
			t.Errorf("the lock ends at %v, want %v or later", lock.Until(), want)
		}
		Must(t, lock.Release(t.Context()))
	})
}
