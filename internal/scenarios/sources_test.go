package scenarios_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// These tests check the described behaviour of other locks on Redis, row by row, with five masters and with one. Rows
// about reentrant, shared and fenced locks are in the tests of those locks.

// stage is a row's masters, a Locker over them, and a client to look into the first.
type stage struct {
	urls   []string
	locker *redlock.Locker
	peek   *redis.Client
}

// onStage runs a row with five masters and with one.
func onStage(t *testing.T, row func(t *testing.T, s stage)) {
	t.Helper()
	for name, n := range map[string]int{"five masters": 5, "one master": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, err := embedded.Start(n)
			must(t, err)
			t.Cleanup(func() { must(t, cluster.Close()) })
			peek := redis.NewClient(&redis.Options{Addr: cluster.Addrs()[0]})
			t.Cleanup(func() { _ = peek.Close() })
			s := stage{urls: cluster.URLs(), peek: peek}
			s.locker = s.another(t)
			row(t, s)
		})
	}
}

// another is a Locker of another process.
func (s stage) another(t *testing.T) *redlock.Locker {
	t.Helper()
	l, err := redlock.Dial(t.Context(), s.urls, redlock.Options{RequestTimeout: 2 * time.Second})
	must(t, err)
	t.Cleanup(func() { closeLocker(t, l) })
	return l
}

// S0: a refusal returns for how long the key is still held.
func TestSourceS0ARefusalReportsTheRemainingTTL(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		lock := acquire(t, s.locker, longTTL)
		_, err := s.another(t).TryAcquire(t.Context(), key, longTTL)
		is(t, err, redlock.ErrHeld)
		var q *redlock.QuorumError
		if !errors.As(err, &q) {
			t.Fatalf("%v is no QuorumError", err)
		}
		for _, node := range q.Nodes {
			if node.Vote == redlock.Refused && (node.TTL > longTTL || node.TTL < longTTL-promptly) {
				t.Errorf("%s refuses for %v, want about %v", node.Master, node.TTL, longTTL)
			}
		}
		must(t, lock.Release(t.Context()))
	})
}

// S0: only the owner releases. S1: a holder with an expired lock does not delete its successor's lock.
func TestSourceS0S1AReleaseNeverDeletesAnotherOwnersLock(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		late := acquire(t, s.locker, 2100*time.Millisecond)
		<-late.Done()
		other := s.another(t)
		lock := acquire(t, other, longTTL) // once the first has expired
		is(t, late.Release(t.Context()), redlock.ErrNotHeld)
		must(t, lock.Verify(t.Context()))
		must(t, lock.Release(t.Context()))
	})
}

// S0: renewal at a third of the expiry, only while the owner still holds the key; it stops by itself when it does not.
func TestSourceS0RenewalAtAThirdWhileTheOwnerHolds(t *testing.T) {
	for _, n := range []int{5, 1} {
		bubble(t, n, func(t *testing.T, masters fakes) {
			l := masters.Locker(t, redlock.Options{})
			lock := acquire(t, l, 9*time.Second, redlock.AutoRenew())
			settle(3*time.Second - time.Millisecond)
			if left := lock.Remaining(); left > 6*time.Second {
				t.Errorf("renewed before a third of the ttl: %v left", left)
			}
			settle(10 * time.Millisecond)
			if left := lock.Remaining(); left < 8*time.Second {
				t.Errorf("not renewed at a third of the ttl: %v left", left)
			}
			for _, m := range masters {
				m.Take("other", time.Hour)
			}
			<-lock.Done()
			settle(time.Second)
			before := masters.Asked()
			settle(time.Minute)
			if n := masters.Asked(); n != before {
				t.Errorf("the renewal of a lost lock asked %d times", n-before)
			}
			for _, m := range masters {
				if held := m.Holder(); held != "other" {
					t.Errorf("%s is held by %q", m.Name(), held)
				}
			}
		})
	}
}

// S1: try once; try at an interval for a maximum number of attempts.
func TestSourceS1TryOnceAndTryAtAnInterval(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		lock := acquire(t, s.locker, longTTL)
		other := s.another(t)
		_, err := other.TryAcquire(t.Context(), key, longTTL)
		is(t, err, redlock.ErrHeld)
		_, err = other.Acquire(t.Context(), key, longTTL, redlock.RetryEvery(20*time.Millisecond),
			redlock.MaxAttempts(3))
		onlyIs(t, err, redlock.ErrHeld)
		must(t, lock.Release(t.Context()))
		lock, err = other.TryAcquire(t.Context(), key, longTTL)
		must(t, err)
		must(t, lock.Release(t.Context()))
	})
	for _, n := range []int{5, 1} {
		bubble(t, n, func(t *testing.T, masters fakes) {
			for _, m := range masters {
				m.Take("other", time.Hour)
			}
			began := time.Now()
			_, err := masters.Locker(t, redlock.Options{}).Acquire(t.Context(), key, longTTL,
				redlock.RetryEvery(time.Second), redlock.MaxAttempts(3))
			onlyIs(t, err, redlock.ErrHeld)
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("three attempts took %v, want two pauses of a second between them", took)
			}
			settle(time.Second)
			if n := masters[0].Count(single.Acquire); n != 3 {
				t.Errorf("%d attempts, want 3", n)
			}
		})
	}
}

// S1: interrupted waiting ends cleanly: nothing is left, and nothing keeps the next one out.
func TestSourceS1InterruptedWaitingEndsCleanly(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		lock := acquire(t, s.locker, longTTL)
		other := s.another(t)
		_, err := other.Acquire(within(t, 50*time.Millisecond), key, longTTL)
		is(t, err, context.DeadlineExceeded)
		must(t, lock.Verify(t.Context()))
		must(t, lock.Release(t.Context()))
		must(t, acquire(t, s.locker, longTTL).Release(t.Context()))
	})
}

// S1: a key never stands without its expiry, not even between two commands.
func TestSourceS1AcquireAndExpiryAreAtomic(t *testing.T) {
	server := redistest.Start(t)
	for range 20 { // the client is cut off in the middle of acquiring, again and again
		l := dial(t, []*redistest.Server{server}, redlock.Options{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if lock, err := l.TryAcquire(t.Context(), key, 50*time.Millisecond); err == nil {
				_ = lock.Release(t.Context())
			}
		}()
		_ = server.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err()
		if left := server.Client().TTL(t.Context(), key).Val(); left == -1 {
			t.Fatal("the key has no expiry")
		}
		<-ended
	}
}

// S1: locking twice, and unlocking a lock that was never taken, are separate errors.
func TestSourceS1LockingTwiceAndUnlockingBeforeLockingAreErrors(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		lock := acquire(t, s.locker, longTTL)
		_, err := s.locker.Acquire(lock.Context(t.Context()), key, longTTL)
		is(t, err, redlock.ErrAlreadyHeld)
		isNot(t, err, redlock.ErrHeld)
		must(t, lock.Release(t.Context()))
		var never *redlock.Lock
		is(t, never.Release(t.Context()), redlock.ErrNotHeld)
	})
}

// S1: the clients' clocks need not agree.
func TestSourceS1ClientsClocksNeedNotAgree(t *testing.T) {
	bubble(t, 5, func(t *testing.T, masters fakes) {
		ahead := newClock()
		ahead.Suspend(1000 * time.Hour)
		a, b := masters.Locker(t, redlock.Options{Clock: ahead}), masters.Locker(t, redlock.Options{})
		for _, pair := range [][2]*redlock.Locker{{a, b}, {b, a}} {
			lock := acquire(t, pair[0], 10*time.Second)
			_, err := pair[1].TryAcquire(t.Context(), key, 10*time.Second)
			is(t, err, redlock.ErrHeld)
			<-lock.Done()
			settle(time.Second)
			must(t, acquire(t, pair[1], 10*time.Second).Release(t.Context()))
			settle(time.Second)
		}
	})
}

// S3: ask who holds the lock, and whether a given owner does.
func TestSourceS3HolderNamesTheHolder(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		other := s.another(t)
		holder, err := other.Holder(t.Context(), key)
		must(t, err)
		if holder.Held {
			t.Errorf("a free key has the holder %+v", holder)
		}
		lock := acquire(t, s.locker, longTTL)
		must(t, lock.Verify(t.Context()))
		holder, err = other.Holder(t.Context(), key)
		must(t, err)
		if !holder.Held || holder.ID != lock.ID() {
			t.Errorf("the holder is %+v, want %s", holder, lock.ID())
		}
		must(t, lock.Release(t.Context()))
		is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
	})
}

// S3: several goroutines, each with separate locks.
func TestSourceS3GoroutinesHaveTheirOwnLocks(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			all.Go(func() {
				for range 5 {
					lock, err := s.locker.Acquire(t.Context(), name, longTTL)
					if err != nil {
						t.Error(err)
						return
					}
					if err := lock.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

// S3: a release wakes a waiter, which does not have to wait for a ttl.
func TestSourceS3AReleaseWakesAWaiter(t *testing.T) {
	onStage(t, func(t *testing.T, s stage) {
		lock := acquire(t, s.locker, time.Hour)
		other := s.another(t)
		woken := make(chan error, 1)
		go func() {
			lock, err := other.Acquire(t.Context(), key, longTTL)
			woken <- err
			if err == nil {
				_ = lock.Release(t.Context())
			}
		}()
		select {
		case err := <-woken:
			t.Fatalf("a held lock was acquired: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		must(t, lock.Release(t.Context()))
		select {
		case err := <-woken:
			must(t, err)
		case <-time.After(promptly):
			t.Fatal("the waiter was not woken")
		}
	})
}

// S3: an optional renewal with a maximum number of renewals, which stops on release. RedLock's five steps: the client
// reads the time. It sends the same key and value to all masters, each with a short timeout. It needs a majority
// within the validity. The validity is the ttl minus the elapsed time. After a failure it releases on all masters,
// also on those that refused.
func TestSourceS3TheFiveStepsOfRedLock(t *testing.T) {
	bubble(t, 5, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		for _, m := range masters[:3] {
			m.Behave(away(30 * time.Millisecond))
		}
		began := time.Now()
		lock := acquire(t, l, 10*time.Second)
		if took := time.Since(began); took != 30*time.Millisecond {
			t.Errorf("a majority took %v, the third fastest of five answers takes 30ms", took)
		}
		if left := lock.Remaining(); left != 9898*time.Millisecond-30*time.Millisecond {
			t.Errorf("validity %v, want the rest of it after 30ms", left)
		}
		if n := masters.Holders(lock.Owner()); n != 5 {
			t.Errorf("%d masters have the same key and value", n)
		}
		must(t, lock.Release(t.Context()))
		settle(time.Second)

		masters.Behave(nil)
		for _, m := range masters[:3] {
			m.Take("other", longTTL)
		}
		releases := func() (all []int) {
			for _, m := range masters {
				all = append(all, m.Count(single.Release))
			}
			return all
		}
		before := releases()
		_, err := l.TryAcquire(t.Context(), key, 10*time.Second)
		is(t, err, redlock.ErrHeld)
		settle(time.Second)
		for i, n := range releases() {
			if n != before[i]+1 {
				t.Errorf("%s was asked %d times to release after the failure, want once", masters[i].Name(),
					n-before[i])
			}
		}
		if n := masters.Holders("other"); n != 3 || masters.Holders("") != 3 {
			t.Errorf("the other holder has %d masters, all together %d", n, masters.Holders(""))
		}
	})
}
