package scenarios_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// compareAndDelete is the release that the Redis documentation gives and other implementations use.
const compareAndDelete = `
if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

func releaseByHand(t *testing.T, s *redistest.Server, owner string) int64 {
	t.Helper()
	n, err := redis.NewScript(compareAndDelete).Run(t.Context(), s.Client(), []string{Key}, owner).Int64()
	Must(t, err)
	return n
}

func TestAHolderMadeByHandExcludesThisLibrary(t *testing.T) {
	servers, l := Started(t, 5)
	SetByHand(t, servers[:3], "by hand", LongTTL)
	_, err := l.TryAcquire(t.Context(), Key, LongTTL)
	OnlyIs(t, err, redlock.ErrHeld)
	if n := Holders(t, servers, "by hand"); n != 3 {
		t.Fatalf("the holder made by hand has %d masters left, want 3", n)
	}
	for i, s := range servers[:3] {
		if n := releaseByHand(t, s, "by hand"); n != 1 {
			t.Errorf("%d: the release by hand removed %d keys, want 1", i, n)
		}
	}
	Must(t, Acquire(t, l, LongTTL).Release(t.Context()))
}

func TestThisLibraryExcludesAHolderMadeByHand(t *testing.T) {
	servers, l := Started(t, 5)
	lock := Acquire(t, l, LongTTL)
	Everywhere(t, servers, lock)
	for i, s := range servers {
		set, err := s.Client().SetNX(t.Context(), Key, "by hand", time.Minute).Result()
		Must(t, err)
		if set {
			t.Errorf("%d: SET NX by hand succeeded", i)
		}
		if n := releaseByHand(t, s, "by hand"); n != 0 {
			t.Errorf("%d: a foreign release by hand removed the key", i)
		}
	}
	Must(t, lock.Extend(t.Context(), LongTTL))
	Must(t, lock.Release(t.Context()))
	redistest.Eventually(t, Promptly, func() bool { return Holders(t, servers, "") == 0 }, "the keys to be removed")
	SetByHand(t, servers, "by hand", LongTTL)
}

func TestALockOfThisLibraryCanBeReleasedByHand(t *testing.T) {
	servers, l := Started(t, 5)
	lock := Acquire(t, l, LongTTL)
	Everywhere(t, servers, lock)
	for i, s := range servers {
		if n := releaseByHand(t, s, lock.Owner()); n != 1 {
			t.Errorf("%d: the release by hand removed %d keys, want 1", i, n)
		}
	}
	Must(t, Acquire(t, Dial(t, servers, redlock.Options{}), LongTTL).Release(t.Context()))
	Is(t, lock.Release(t.Context()), redlock.ErrNotHeld) // its holder is told
}
