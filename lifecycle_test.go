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
	"github.com/seed-624411e5/redlock/redlocktest"
)

func TestReleasingTwiceSaysTheSameTwice(t *testing.T) {
	withLocker(t, 3, func(t *testing.T, masters fakes, l *redlock.Locker) {
		lock := acquire(t, l, longTTL)
		must(t, lock.Release(t.Context()))
		settle(time.Second)
		before := masters.Asked()
		must(t, lock.Release(t.Context()))
		if n := masters.Asked(); n != before {
			t.Errorf("the second release sent %d requests to the masters", n-before)
		}

		lost := acquire(t, l, longTTL)
		settle(time.Millisecond)
		masters.Forget()
		first := lost.Release(t.Context())
		onlyIs(t, first, redlock.ErrNotHeld)
		if second := lost.Release(t.Context()); second == nil || second.Error() != first.Error() {
			t.Errorf("the second release returned %v, the first returned %v", second, first)
		}
	})
}

func TestAReleasedLockIsOver(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := acquire(t, l, longTTL, redlock.AutoRenew())
		ctx := lock.Context(t.Context())
		if lock.Err() != nil || over(lock) || ctx.Err() != nil {
			t.Fatalf("a lock that is held: %v, %v", lock.Err(), ctx.Err())
		}
		must(t, lock.Release(t.Context()))
		is(t, lock.Err(), redlock.ErrNotHeld)
		is(t, lock.Extend(t.Context(), longTTL), redlock.ErrNotHeld)
		is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		is(t, ctx.Err(), context.Canceled)
		is(t, context.Cause(ctx), redlock.ErrNotHeld)
		now, cancel := context.WithCancel(lock.Context(t.Context())) // also of one that is made now
		defer cancel()
		select {
		case <-now.Done():
			is(t, context.Cause(now), redlock.ErrNotHeld)
		case <-time.After(time.Hour):
			t.Error("what descends from a context that is made now goes on")
		}
		if !over(lock) || lock.Remaining() != 0 || lock.Until().After(time.Now()) {
			t.Errorf("Done closed: %t, remaining %v, until %v", over(lock), lock.Remaining(), lock.Until())
		}
		if lock.Key() != key || len(lock.Keys()) != 1 || lock.Owner() == "" {
			t.Errorf("the lock has forgotten its key, keys or owner: %q, %q, %q", lock.Key(), lock.Keys(), lock.Owner())
		}
	})
}

func TestAllMethodsMayBeCalledAtOnce(t *testing.T) {
	masters := newFakes(5)
	l := masters.Locker(t, redlock.Options{})
	for range 20 {
		lock := acquire(t, l, longTTL, redlock.AutoRenew())
		concurrently(16, func(i int) {
			if i%4 == 0 {
				is(t, lock.Release(t.Context()), nil)
			}
			// An extension that a newer one overtakes while it waits for its turn has not been confirmed.
			if err := lock.Extend(t.Context(), longTTL); err != nil && !errors.Is(err, redlock.ErrNotHeld) &&
				!errors.Is(err, redlock.ErrNoQuorum) {
				t.Errorf("Extend: %v", err)
			}
			if lock.Remaining() == 0 && lock.Err() == nil { // in this order: it may be released between the two
				t.Error("held for no time at all")
			}
			_, _, _ = lock.Until(), lock.Context(t.Context()).Err(), over(lock)
		})
		is(t, lock.Err(), redlock.ErrNotHeld)
	}
	closeLocker(t, l)
	masters.AllFree(t)
}

func TestALocksContextEndsWithItsParent(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := acquire(t, l, longTTL)
		why := errors.New("why")
		parent, cancel := context.WithCancelCause(t.Context())
		ctx := lock.Context(parent)
		cancel(why)
		<-ctx.Done()
		is(t, context.Cause(ctx), why)
		must(t, lock.Err())
		for _, parent := range []string{"one", "another"} { // each by its own
			of, cancel := context.WithCancelCause(t.Context())
			child := lock.Context(of)
			must(t, child.Err())
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
		if is(t, ofSecond.Err(), context.Canceled); ofFirst.Err() != nil {
			t.Errorf("the context for a parent that goes on: %v", ofFirst.Err())
		}
		must(t, lock.Release(t.Context()))
	})
}

func TestExtendNeverShortensTheValidity(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		lock := acquire(t, l, 10*time.Second)
		must(t, lock.Extend(t.Context(), longTTL))
		if got := lock.Remaining(); got != longTTL-longTTL/100-2*time.Millisecond {
			t.Errorf("after the extension held for %v", got)
		}
		until := lock.Until()
		must(t, lock.Extend(t.Context(), 10*time.Second))
		if got := lock.Until(); !got.Equal(until) {
			t.Errorf("a shorter extension moved the bound by %v", got.Sub(until))
		}
		must(t, lock.Release(t.Context()))
	})
}

func TestRenewalKeepsALockWithOneMasterStopped(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 5)
	l := dial(t, servers, redlock.Options{RequestTimeout: 300 * time.Millisecond}) // a busy machine is not the point
	const ttl = 2 * time.Second
	began := time.Now()
	lock := acquire(t, l, ttl, redlock.AutoRenew())
	must(t, servers[1].Pause())
	redistest.Eventually(t, promptly, func() bool {
		return lock.Err() != nil || lock.Until().Sub(began) > 3*ttl
	}, "the bound to move on by several ttls")
	must(t, lock.Err())
	_, err := l.TryAcquire(t.Context(), key, ttl)
	is(t, err, redlock.ErrHeld)
	must(t, lock.Release(t.Context()))
	must(t, servers[1].Resume())
	redistest.Eventually(t, promptly, func() bool { return holders(t, servers, "") == 0 },
		"the stopped master to be cleaned up")
}

func TestCloseWaitsForHoldsAndRefusesNewOnes(t *testing.T) {
	withLocker(t, 3, func(t *testing.T, masters fakes, l *redlock.Locker) {
		lock := acquire(t, l, time.Hour)
		waiter := make(chan error, 1)
		go func() {
			_, err := l.Acquire(context.Background(), key, time.Hour)
			waiter <- err
		}()
		settle(time.Second)
		closed := make(chan error, 1)
		go func() { closed <- l.Close(context.Background()) }()
		synctest.Wait()
		is(t, <-waiter, redlock.ErrClosed)
		_, err := l.TryAcquire(t.Context(), "another", longTTL)
		onlyIs(t, err, redlock.ErrClosed)
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait for the hold: %v", err)
		case <-time.After(time.Minute):
		}
		must(t, lock.Err())
		must(t, lock.Extend(t.Context(), time.Hour)) // what is held works as before
		must(t, lock.Release(t.Context()))
		must(t, <-closed)
		must(t, l.Close(t.Context())) // again
		masters.AllFree(t)
	})
}

func TestCloseWaitsUntilHoldsHaveLapsed(t *testing.T) {
	withLocker(t, 3, func(t *testing.T, _ fakes, l *redlock.Locker) {
		acquire(t, l, 10*time.Second)
		began := time.Now()
		must(t, l.Close(t.Context()))
		if took := time.Since(began); took > 10*time.Second || took < 9*time.Second {
			t.Errorf("Close took %v, want the life of the lock", took)
		}
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	withLocker(t, 3, func(t *testing.T, masters fakes, l *redlock.Locker) {
		lock := acquire(t, l, time.Hour, redlock.AutoRenew())
		work, end := context.WithCancel(lock.Context(t.Context()))
		defer end()
		settle(time.Second)
		err := l.Close(within(t, time.Second))
		is(t, err, context.DeadlineExceeded)
		select {
		case <-work.Done():
			is(t, context.Cause(work), redlock.ErrClosed)
		default:
			t.Error("the context of the lock is not cancelled")
		}
		is(t, lock.Err(), redlock.ErrNotHeld)
		is(t, lock.Err(), redlock.ErrClosed)
		is(t, context.Cause(lock.Context(t.Context())), redlock.ErrClosed)
		is(t, lock.Extend(t.Context(), time.Hour), redlock.ErrClosed)
		is(t, lock.Release(t.Context()), redlock.ErrClosed)
		before := masters.Asked()
		settle(2 * time.Hour)
		if n := masters.Asked(); n != before {
			t.Errorf("%d requests after Close", n-before)
		}
	})
}

// Close may return before an acquisition is won. Then the acquisition fails; it does not return a lock that is over.
func TestAnAcquisitionFailsWhenCloseReturnsBeforeIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		masters.Behave(away(time.Second))
		l := masters.Locker(t, redlock.Options{RequestTimeout: 10 * time.Second})
		acquired := make(chan error, 1)
		go func() {
			lock, err := l.TryAcquire(context.Background(), key, time.Hour)
			if err == nil {
				err = errors.Join(errors.New("returned a lock"), lock.Err())
			}
			acquired <- err
		}()
		settle(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		is(t, l.Close(ctx), context.Canceled)
		err := <-acquired
		is(t, err, redlock.ErrClosed)
		isNot(t, err, redlock.ErrNotHeld)
	})
}

func TestCloseIsNotHeldUpByAMasterThatNeverReturns(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		stuck := make(chan struct{})
		voters := []redlock.Master{masters[0], masters[1], deaf{Fake: masters[2], Stuck: stuck}}
		l, err := redlock.New(voters, redlock.Options{Clock: newClock()})
		must(t, err)
		must(t, acquire(t, l, 10*time.Second).Release(t.Context()))
		ctx := within(t, time.Second)
		began := time.Now()
		is(t, l.Close(ctx), context.DeadlineExceeded) // that master's key may be left
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		close(stuck)
	})
}

// A client of another kind may keep its own deadlines; a round does not wait for it.
func TestHazard04ARoundDoesNotWaitForAClientThatKeepsNoDeadlines(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, err := redlock.New(wrapEach(servers, func(_ int, s *redistest.Server) redlock.Master {
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{s.Addr(): s.Addr()}})
		t.Cleanup(func() { _ = ring.Close() })
		m, err := redlock.NewMaster(ring)
		must(t, err)
		return m
	}), redlock.Options{RequestTimeout: 100 * time.Millisecond})
	must(t, err)
	t.Cleanup(func() { closeLocker(t, l) })
	must(t, servers[0].Pause())
	began := time.Now()
	must(t, acquire(t, l, longTTL).Release(t.Context()))
	must(t, servers[1].Pause())
	_, err = l.TryAcquire(t.Context(), key, longTTL)
	is(t, err, redlock.ErrNoQuorum)
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	must(t, servers[0].Resume())
	must(t, servers[1].Resume())
}

// Callers wait for an extension, and then all of them for the configuration. The next extension serves all of them.
func TestExtensionsThatWaitForTheConfigurationShareTheNextOne(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		lock := acquire(t, l, longTTL)
		const slow = 10 * time.Millisecond
		for _, m := range masters {
			m.SlowDown(slow)
		}
		began := time.Now()
		concurrently(8, func(i int) {
			calls, ttl := 0, longTTL+time.Duration(i)*time.Second
			must(t, lock.ExtendAsOf(ttl, func(context.Context) (time.Duration, error) {
				if calls++; calls > 1 {
					<-time.After(time.Millisecond) // until each of them is here
				}
				return time.Since(began) + time.Hour, nil
			}))
		})
		if took := time.Since(began); took > 3*slow {
			t.Errorf("8 extensions took %v, and each master answers after %v", took, slow)
		}
		if want := began.Add(longTTL + 6*time.Second); lock.Until().Before(want) {
			t.Errorf("the lock ends at %v, want %v or later", lock.Until(), want)
		}
		must(t, lock.Release(t.Context()))
	})
}
