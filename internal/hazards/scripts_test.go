package hazards_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// Data on the masters can cost a holder its lock. These tests try all such cases, with whole locks.

// everyLock acquires a lock of each kind, each on a separate key.
func everyLock(t *testing.T, l *redlock.Locker) map[string]*redlock.Lock {
	t.Helper()
	return map[string]*redlock.Lock{
		"plain":     Take(t, l, "plain", LongTTL),
		"fenced":    Take(t, l, "fenced", LongTTL, redlock.Fenced()),
		"shared":    Take(t, l, "shared", LongTTL, redlock.Shared()),
		"beside":    Take(t, l, "shared", LongTTL, redlock.Shared()),
		"exclusive": Take(t, l, "exclusive", LongTTL, redlock.Exclusive()),
		"reentrant": Take(t, l, "reentrant", LongTTL, redlock.Reentrant("owner")),
		"reentered": Take(t, l, "reentrant", LongTTL, redlock.Reentrant("owner")),
		"many keys": Take(t, l, "a", LongTTL, redlock.AndKeys("b", "c")),
	}
}

// full counts the masters that said they are full.
func full(nodes []redlock.NodeResult) (n int) {
	for _, node := range nodes {
		if node.Err != nil && redis.HasErrorPrefix(node.Err, "OOM") {
			n++
		}
	}
	return n
}

// Masters of one size fill together, so it is no help that there are several.
func TestHazard36LocksOnFullMastersAreKept(t *testing.T) {
	servers, l := Started(t, 3)
	locks := everyLock(t, l)
	TellAll(t, servers, "config", "set", "maxmemory", "1")
	for n, ttl := range []time.Duration{2 * LongTTL, 3 * LongTTL, 4 * LongTTL} {
		for name, lock := range locks {
			before := lock.Until()
			if err := lock.Extend(t.Context(), ttl); err != nil || lock.Until().Equal(before) {
				t.Fatalf("%s: extension %d: %v", name, n, err)
			}
			Must(t, lock.Verify(t.Context()))
		}
	}
	_, err := l.TryAcquire(t.Context(), "another", LongTTL)
	var quorum *redlock.QuorumError
	// the third may not have answered yet
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &quorum) || full(quorum.Nodes) < 2 {
		t.Errorf("a lock of a full master: %v, want no quorum, and why", err)
	}
	for _, lock := range locks {
		Give(t, lock)
	}
	for _, s := range servers {
		redistest.Eventually(t, Promptly, func() bool {
			keys, err := s.Client().Keys(t.Context(), "[^r]*").Result()
			return err == nil && len(keys) == 0
		}, "all keys to go")
	}
}

// A master that lost one hold of a key gets it back, also where it still has another one.
func TestHazard50AHoldThatSharesItsKeyIsRepaired(t *testing.T) {
	for name, option := range map[string]redlock.Option{
		"shared": redlock.Shared(), "reentrant": redlock.Reentrant("owner"),
	} {
		t.Run(name, func(t *testing.T) {
			servers, l := Started(t, 3)
			first, second := Take(t, l, Key, LongTTL, option), Take(t, l, Key, 2*LongTTL, option)
			holds := func(s *redistest.Server) []redis.Z {
				all, err := s.Client().ZRangeByScoreWithScores(t.Context(), Key, &redis.ZRangeBy{
					Min: "0", Max: "+inf",
				}).Result()
				if redis.HasErrorPrefix(err, "WRONGTYPE") { // the first alone is a string
					return nil
				}
				Must(t, err)
				return all
			}
			for _, s := range servers {
				redistest.Eventually(t, Promptly, func() bool { return len(holds(s)) == 2 },
					"both holds on every master")
			}
			lost := holds(servers[0])[0] // the first ends first
			Must(t, servers[0].Client().ZRem(t.Context(), Key, lost.Member).Err())
			Must(t, first.Extend(t.Context(), LongTTL))
			redistest.Eventually(t, Promptly, func() bool { return len(holds(servers[0])) == 2 },
				"the hold to be there again")
			Give(t, first)
			Must(t, second.Verify(t.Context()))
			Give(t, second)
			Nowhere(t, servers, Key)
		})
	}
}

// A repair sets a hold that was missing for a while. It must not succeed while there is another hold that excludes
// it.
func TestHazard50NoHoldIsRepairedWhereAnExclusiveHoldHasTheKey(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, Key, LongTTL, redlock.Shared())
	Everywhere(t, servers, lock)
	Must(t, servers[0].Client().Del(t.Context(), Key).Err())
	one := Dial(t, servers[:1], redlock.Options{})
	writer := Take(t, one, Key, LongTTL, redlock.Exclusive())
	Must(t, lock.Extend(t.Context(), LongTTL))
	Must(t, lock.Extend(t.Context(), LongTTL))
	Must(t, writer.Verify(t.Context()))
	Give(t, lock)
	Must(t, writer.Verify(t.Context()))
	Give(t, writer)
}

func TestHazard64ReservedNamesAreNoKeys(t *testing.T) {
	l := Dial(t, redistest.StartN(t, 1), redlock.Options{})
	for _, name := range []string{
		"redlock:queue:{x}", "redlock:token:{x}", "redlock:guard", "redlock:check:1", "redlock:", "redlock:free:x",
	} {
		for what, try := range map[string]func() error{
			"Acquire": func() error {
				_, err := l.Acquire(t.Context(), name, LongTTL, redlock.Exclusive())
				return err
			},
			"TryAcquire": func() error { _, err := l.TryAcquire(t.Context(), name, LongTTL); return err },
			"AndKeys": func() error {
				_, err := l.Acquire(t.Context(), "x", LongTTL, redlock.AndKeys("y", name))
				return err
			},
			"Holder": func() error { _, err := l.Holder(t.Context(), name); return err },
		} {
			Refused(t, what+" of "+name, try())
		}
	}
	for _, name := range []string{"redlock", "redlock-x", "Redlock:x", "x:redlock:"} {
		Give(t, Take(t, l, name, LongTTL))
	}
}
