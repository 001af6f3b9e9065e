package scenarios_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// compareAndDelete is the release that the Redis documentation gives and other implementations use.
const compareAndDelete = `
if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

func releaseByHand(t *testing.T, s *redistest.Server, owner string) int64 {
	t.Helper()
	n, err := redis.NewScript(compareAndDelete).Run(t.Context(), s.Client(), []string{key}, owner).Int64()
	must(t, err)
	return n
}

func TestAHolderMadeByHandExcludesThisLibrary(t *testing.T) {
	servers, l := started(t, 5)
	setByHand(t, servers[:3], "by hand", longTTL)
	_, err := l.TryAcquire(t.Context(), key, longTTL)
	onlyIs(t, err, redlock.ErrHeld)
	if n := holders(t, servers, "by hand"); n != 3 {
		t.Fatalf("the holder made by hand has %d masters left, want 3", n)
	}
	for i, s := range servers[:3] {
		if n := releaseByHand(t, s, "by hand"); n != 1 {
			t.Errorf("%d: the release by hand removed %d keys, want 1", i, n)
		}
	}
	must(t, acquire(t, l, longTTL).Release(t.Context()))
}

func TestThisLibraryExcludesAHolderMadeByHand(t *testing.T) {
	servers, l := started(t, 5)
	lock := acquire(t, l, longTTL)
	everywhere(t, servers, lock)
	for i, s := range servers {
		set, err := s.Client().SetNX(t.Context(), key, "by hand", time.Minute).Result()
		must(t, err)
		if set {
			t.Errorf("%d: SET NX by hand succeeded", i)
		}
		if n := releaseByHand(t, s, "by hand"); n != 0 {
			t.Errorf("%d: a foreign release by hand removed the key", i)
		}
	}
	must(t, lock.Extend(t.Context(), longTTL))
	must(t, lock.Release(t.Context()))
	redistest.Eventually(t, promptly, func() bool { return holders(t, servers, "") == 0 }, "the keys to be removed")
	setByHand(t, servers, "by hand", longTTL)
}

func TestALockOfThisLibraryCanBeReleasedByHand(t *testing.T) {
	servers, l := started(t, 5)
	lock := acquire(t, l, longTTL)
	everywhere(t, servers, lock)
	for i, s := range servers {
		if n := releaseByHand(t, s, lock.Owner()); n != 1 {
			t.Errorf("%d: the release by hand removed %d keys, want 1", i, n)
		}
	}
	must(t, acquire(t, dial(t, servers, redlock.Options{}), longTTL).Release(t.Context()))
	is(t, lock.Release(t.Context()), redlock.ErrNotHeld) // its holder is told
}
