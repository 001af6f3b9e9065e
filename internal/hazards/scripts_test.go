package hazards_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// Data on the masters can cost a holder its lock. These tests try all such cases, with whole locks.

// everyLock acquires a lock of each kind, each on a separate key.
func everyLock(t *testing.T, l *redlock.Locker) map[string]*redlock.Lock {
	t.Helper()
	return map[string]*redlock.Lock{
		"plain":     take(t, l, "plain", longTTL),
		"fenced":    take(t, l, "fenced", longTTL, redlock.Fenced()),
		"shared":    take(t, l, "shared", longTTL, redlock.Shared()),
		"beside":    take(t, l, "shared", longTTL, redlock.Shared()),
		"exclusive": take(t, l, "exclusive", longTTL, redlock.Exclusive()),
		"reentrant": take(t, l, "reentrant", longTTL, redlock.Reentrant("owner")),
		"reentered": take(t, l, "reentrant", longTTL, redlock.Reentrant("owner")),
		"many keys": take(t, l, "a", longTTL, redlock.AndKeys("b", "c")),
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
	servers, l := started(t, 3)
	locks := everyLock(t, l)
	tellAll(t, servers, "config", "set", "maxmemory", "1")
	for n, ttl := range []time.Duration{2 * longTTL, 3 * longTTL, 4 * longTTL} {
		for name, lock := range locks {
			before := lock.Until()
			if err := lock.Extend(t.Context(), ttl); err != nil || lock.Until().Equal(before) {
				t.Fatalf("%s: extension %d: %v", name, n, err)
			}
			must(t, lock.Verify(t.Context()))
		}
	}
	_, err := l.TryAcquire(t.Context(), "another", longTTL)
	var quorum *redlock.QuorumError
	// the third may not have answered yet
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.As(err, &quorum) || full(quorum.Nodes) < 2 {
		t.Errorf("a lock of a full master: %v, want no quorum, and why", err)
	}
	for _, lock := range locks {
		give(t, lock)
	}
	for _, s := range servers {
		redistest.Eventually(t, promptly, func() bool {
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
			servers, l := started(t, 3)
			first, second := take(t, l, key, longTTL, option), take(t, l, key, 2*longTTL, option)
			holds := func(s *redistest.Server) []redis.Z {
				all, err := s.Client().ZRangeByScoreWithScores(t.Context(), key, &redis.ZRangeBy{
					Min: "0", Max: "+inf",
				}).Result()
				if redis.HasErrorPrefix(err, "WRONGTYPE") { // the first alone is a string
					return nil
				}
				must(t, err)
				return all
			}
			for _, s := range servers {
				redistest.Eventually(t, promptly, func() bool { return len(holds(s)) == 2 },
					"both holds on every master")
			}
			lost := holds(servers[0])[0] // the first ends first
			must(t, servers[0].Client().ZRem(t.Context(), key, lost.Member).Err())
			must(t, first.Extend(t.Context(), longTTL))
			redistest.Eventually(t, promptly, func() bool { return len(holds(servers[0])) == 2 },
				"the hold to be there again")
			give(t, first)
			must(t, second.Verify(t.Context()))
			give(t, second)
			nowhere(t, servers, key)
		})
	}
}

// A repair sets a hold that was missing for a while. It must not succeed while there is another hold that excludes
// it.
func TestHazard50NoHoldIsRepairedWhereAnExclusiveHoldHasTheKey(t *testing.T) {
	servers, l := started(t, 3)
	lock := take(t, l, key, longTTL, redlock.Shared())
	everywhere(t, servers, lock)
	must(t, servers[0].Client().Del(t.Context(), key).Err())
	one := dial(t, servers[:1], redlock.Options{})
	writer := take(t, one, key, longTTL, redlock.Exclusive())
	must(t, lock.Extend(t.Context(), longTTL))
	must(t, lock.Extend(t.Context(), longTTL))
	must(t, writer.Verify(t.Context()))
	give(t, lock)
	must(t, writer.Verify(t.Context()))
	give(t, writer)
}

func TestHazard64ReservedNamesAreNoKeys(t *testing.T) {
	l := dial(t, redistest.StartN(t, 1), redlock.Options{})
	for _, name := range []string{
		"redlock:queue:{x}", "redlock:token:{x}", "redlock:guard", "redlock:check:1", "redlock:", "redlock:free:x",
	} {
		for what, try := range map[string]func() error{
			"Acquire": func() error {
				_, err := l.Acquire(t.Context(), name, longTTL, redlock.Exclusive())
				return err
			},
			"TryAcquire": func() error { _, err := l.TryAcquire(t.Context(), name, longTTL); return err },
			"AndKeys": func() error {
				_, err := l.Acquire(t.Context(), "x", longTTL, redlock.AndKeys("y", name))
				return err
			},
			"Holder": func() error { _, err := l.Holder(t.Context(), name); return err },
		} {
			refused(t, what+" of "+name, try())
		}
	}
	for _, name := range []string{"redlock", "redlock-x", "Redlock:x", "x:redlock:"} {
		give(t, take(t, l, name, longTTL))
	}
}
