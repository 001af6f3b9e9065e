package subject_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// These tests check the promise of docs/start/migration.md. During a rollout that replaces redsync by this library,
// both take the same keys on the same masters, and each excludes the other.

const migrated = "orders:42"

// both makes a client of each library on the same five masters.
func both(t *testing.T) (*redsync.Redsync, *redlock.Locker, []*redistest.Server) {
	t.Helper()
	servers := redistest.StartN(t, 5)
	var pools []rsredis.Pool
	for _, s := range servers {
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	return redsync.New(pools...), locktest.Dial(t, servers, redlock.Options{}), servers
}

func once(rs *redsync.Redsync) *redsync.Mutex {
	return rs.NewMutex(migrated, redsync.WithExpiry(time.Minute), redsync.WithTries(1))
}

func TestALockOfRedsyncKeepsOutThisLibrary(t *testing.T) {
	rs, locker, _ := both(t)
	theirs := once(rs)
	must(t, theirs.LockContext(t.Context()))
	if _, err := locker.TryAcquire(t.Context(), migrated, time.Minute); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("the key that redsync holds: %v, want ErrHeld", err)
	}
	for _, kind := range []redlock.Option{
		redlock.Fenced(), redlock.Shared(), redlock.Exclusive(), redlock.Reentrant("me"), redlock.AndKeys("orders:43"),
	} {
		if _, err := locker.TryAcquire(t.Context(), migrated, time.Minute, kind); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("another kind of lock on the key that redsync holds: %v, want ErrHeld", err)
		}
	}
	if h, err := locker.Holder(t.Context(), migrated); err != nil || !h.Held || h.Identity != "#"+h.ID {
		t.Errorf("Holder: %+v, %v, want redsync's value %q", h, err, theirs.Value())
	}
	if ok, err := theirs.UnlockContext(t.Context()); err != nil || !ok {
		t.Fatalf("redsync lost its lock: %v, %v", ok, err)
	}
	lock, err := locker.Acquire(t.Context(), migrated, time.Minute)
	must(t, err)
	must(t, lock.Release(t.Context()))
}

func TestALockOfThisLibraryKeepsOutRedsync(t *testing.T) {
	rs, locker, servers := both(t)
	for name, opts := range map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "shared": {redlock.Shared()},
		"reentrant": {redlock.Reentrant("me")},
		"renewed":   {redlock.AutoRenew()}, "with another key": {redlock.AndKeys("orders:43")},
	} {
		lock, err := locker.Acquire(t.Context(), migrated, time.Minute, opts...)
		if err != nil {
			t.Fatal(name, err)
		}
		theirs := once(rs)
		if err := theirs.LockContext(t.Context()); err == nil {
			t.Errorf("%s: redsync got the key that is held", name)
		}
		if ok, err := theirs.UnlockContext(t.Context()); ok && err == nil {
			t.Errorf("%s: redsync released a lock that it does not hold", name)
		}
		if err := lock.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("%s: after redsync tried: %v", name, err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("%s: after redsync tried: %v", name, err)
		}
		redistest.Eventually(t, 10*time.Second, func() bool {
			for _, s := range servers {
				if s.Client().Exists(t.Context(), migrated).Val() > 0 {
					return false
				}
			}
			return true
		}, name+": the key to be gone from all masters")
		if err := theirs.LockContext(t.Context()); err != nil {
			t.Errorf("%s: redsync, once the lock is released: %v", name, err)
		}
		if ok, err := theirs.UnlockContext(t.Context()); err != nil || !ok {
			t.Errorf("%s: redsync's own lock: %v, %v", name, ok, err)
		}
	}
}

func TestBothLibrariesOnOneKeyHaveOneHolderAtATime(t *testing.T) {
	rs, locker, _ := both(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var inside, theirs, ours, overlaps atomic.Int64
	critical := func(count *atomic.Int64) {
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		count.Add(1)
		inside.Add(-1)
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for ctx.Err() == nil {
				if lock, err := locker.Acquire(ctx, migrated, time.Minute); err == nil {
					critical(&ours)
					_ = lock.Release(context.WithoutCancel(ctx)) // the next acquisition shows its effect
				}
			}
		})
		workers.Go(func() {
			for ctx.Err() == nil {
				mutex := rs.NewMutex(migrated, redsync.WithExpiry(time.Minute),
					redsync.WithRetryDelay(2*time.Millisecond))
				if mutex.LockContext(ctx) == nil {
					critical(&theirs)
					_, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) // the next acquisition shows its effect
				}
			}
		})
	}
	workers.Wait()
	if overlaps.Load() > 0 || theirs.Load() == 0 || ours.Load() == 0 {
		t.Errorf("%d overlaps; redsync had the key %d times, this library %d times", overlaps.Load(), theirs.Load(),
			ours.Load())
	}
}
