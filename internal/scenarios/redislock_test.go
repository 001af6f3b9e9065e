package scenarios_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The cases of bsm/redislock's tests: over one master.

func TestRedislockALockIsTakenOnceAndAgainWhenItIsReleased(t *testing.T) {
	servers := redistest.StartN(t, 1)
	l := process(t, servers, redlock.Options{})
	begun := time.Now()
	lock, err := l.Acquire(soon(t), key, longTTL)
	must(t, err)
	if len(lock.Owner()) < 22 || valueOf(t, servers[0], key) != lock.Owner() {
		t.Errorf("the master has %q for %q", valueOf(t, servers[0], key), lock.Owner())
	}
	about(t, servers[0], key, longTTL, begun)
	if got := lock.Remaining(); got > longTTL || got < longTTL*98/100 {
		t.Errorf("it is held for another %v", got)
	}
	none, err := l.TryAcquire(t.Context(), key, longTTL)
	is(t, err, redlock.ErrHeld)
	if none != nil {
		t.Errorf("a loser has the lock %v", none)
	}
	must(t, lock.Release(t.Context()))
	again, err := l.Acquire(soon(t), key, longTTL)
	must(t, err)
	if again.Owner() == lock.Owner() {
		t.Error("two locks have one owner value")
	}
	must(t, again.Release(t.Context()))
}

// redislock's metadata belong to one lock. Here they belong to a process, or are published by a fenced lock.
func TestRedislockALockShowsATextToEveryReader(t *testing.T) {
	servers := redistest.StartN(t, 1)
	l := process(t, servers, redlock.Options{Identity: "my-data"})
	lock, err := l.Acquire(soon(t), key, longTTL)
	must(t, err)
	who, err := process(t, servers, redlock.Options{}).Holder(t.Context(), key)
	must(t, err)
	if who.Identity != "my-data" || who.ID != lock.ID() {
		t.Errorf("it says %+v", who)
	}
	must(t, lock.Release(t.Context()))
}

// In redislock, a caller that knows the token gets the lock again. Here only reentrant locks allow that.
func TestRedislockAnOwnerThatKnowsTheTokenGetsTheLockAgain(t *testing.T) {
	servers := redistest.StartN(t, 1)
	one, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL, redlock.Reentrant("foo"))
	must(t, err)
	_, err = process(t, servers, redlock.Options{}).TryAcquire(t.Context(), key, longTTL, redlock.Reentrant("bar"))
	is(t, err, redlock.ErrHeld)
	_, err = process(t, servers, redlock.Options{}).TryAcquire(t.Context(), key, longTTL)
	is(t, err, redlock.ErrHeld)
	again, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL, redlock.Reentrant("foo"))
	must(t, err)
	must(t, one.Release(t.Context()))
	_, err = process(t, servers, redlock.Options{}).TryAcquire(t.Context(), key, longTTL)
	is(t, err, redlock.ErrHeld) // one of two holds is over
	must(t, again.Release(t.Context()))
}

func TestRedislockAPatientWaiterGetsALockThatExpires(t *testing.T) {
	servers := redistest.StartN(t, 1)
	_, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, shortTTL)
	must(t, err)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL, redlock.RetryEvery(shortTTL),
		redlock.MaxAttempts(3))
	must(t, err)
	must(t, lock.Release(t.Context()))
}

func TestRedislockTwoRetriesEndTheWait(t *testing.T) {
	servers := redistest.StartN(t, 1)
	held, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	_, err = process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL,
		redlock.RetryEvery(5*time.Millisecond), redlock.MaxAttempts(3))
	is(t, err, redlock.ErrHeld)
	must(t, held.Release(t.Context()))
}

func TestRedislockAWaitEndsAtItsDeadline(t *testing.T) {
	servers := redistest.StartN(t, 1)
	held, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), shortTTL)
	defer cancel()
	_, err = process(t, servers, redlock.Options{}).Acquire(ctx, key, longTTL, redlock.RetryEvery(5*time.Millisecond))
	is(t, err, redlock.ErrHeld)
	is(t, err, context.DeadlineExceeded)
	must(t, held.Release(t.Context()))
}

func TestRedislockOneOfAHundredGetsTheLock(t *testing.T) {
	servers := redistest.StartN(t, 1)
	l := process(t, servers, redlock.Options{})
	var got atomic.Pointer[redlock.Lock]
	var n atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			lock, err := l.TryAcquire(t.Context(), key, longTTL)
			if err == nil {
				got.Store(lock)
				n.Add(1)
			} else if !errors.Is(err, redlock.ErrHeld) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n.Load() != 1 {
		t.Fatalf("%d have it", n.Load())
	}
	must(t, got.Load().Release(t.Context()))
}

// redislock's Refresh sets the remaining time, even to a shorter one. Here a lock is never shortened: an older answer
// must not reduce the time that a newer one has promised.
func TestRedislockARefreshedLockLivesForAtLeastItsTTL(t *testing.T) {
	servers := redistest.StartN(t, 1)
	begun := time.Now()
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, time.Minute)
	must(t, err)
	about(t, servers[0], key, time.Minute, begun)
	must(t, lock.Extend(t.Context(), longTTL))
	about(t, servers[0], key, longTTL, begun)
	before := lock.Until()
	must(t, lock.Extend(t.Context(), time.Minute))
	about(t, servers[0], key, longTTL, begun)
	// computed from the time left and the time of day, which are read one after the other
	if now := lock.Until(); now.Before(before.Add(-promptly)) {
		t.Errorf("it ended %v, and now %v", before, now)
	}
	must(t, lock.Release(t.Context()))
}

func TestRedislockAnExpiredLockIsNeitherRefreshedNorReleased(t *testing.T) {
	servers := redistest.StartN(t, 1)
	l := process(t, servers, redlock.Options{})
	for range 2 {
		lock, err := l.Acquire(soon(t), key, 20*time.Millisecond)
		must(t, err)
		lapses(t, servers, lock)
		is(t, lock.Extend(t.Context(), time.Minute), redlock.ErrNotHeld)
		is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
	}
}

func TestRedislockAnotherOwnersLockIsNotReleased(t *testing.T) {
	servers := redistest.StartN(t, 1)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	put(t, servers[0], key, "ABCD")
	is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
	if got := valueOf(t, servers[0], key); got != "ABCD" {
		t.Errorf("another owner's key is now %q", got)
	}
}
