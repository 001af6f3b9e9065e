package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// The cases of the tests of redsync, bsm/redislock and node-redlock: docs/evidence/scenarios.md says which test here is
// about which case there.

// valueOf returns a server's value of a key, "" if there is none.
func valueOf(tb testing.TB, s *redistest.Server, k string) string {
	tb.Helper()
	v, err := s.Client().Get(context.WithoutCancel(tb.Context()), k).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return v
}

// withValue counts the servers with this value under a key.
func withValue(tb testing.TB, servers []*redistest.Server, k, v string) (n int) {
	tb.Helper()
	for _, s := range servers {
		if valueOf(tb, s, k) == v {
			n++
		}
	}
	return n
}

// allHave waits until all of these servers have this value. A lock exists as soon as most servers have it.
func allHave(tb testing.TB, servers []*redistest.Server, k, v string) {
	tb.Helper()
	redistest.Eventually(tb, Promptly, func() bool { return withValue(tb, servers, k, v) == len(servers) },
		"all masters to have "+k)
}

// ages is so long that no test sees its end.
const ages = 20 * 365 * 24 * time.Hour

// SOURCES S0: a refusal returns for how long the key is still held.
func TestALockIsTakenExtendedAndReleased(t *testing.T) {
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		l, other := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
		for _, keys := range [][]string{{"{redlock}a"}, {"{redlock}a1", "{redlock}a2"}} {
			lock := Take(t, l, keys[0], ages, redlock.AndKeys(keys...))
			most := time.Duration(0)
			for _, ttl := range []time.Duration{ages, 3 * ages, ages} { // it is never shortened
				Must(t, lock.Extend(t.Context(), ttl))
				most = max(most, ttl)
				for _, k := range keys {
					allHave(t, servers, k, lock.Owner())
					for _, s := range servers {
						redistest.Eventually(t, Promptly, func() bool {
							left := s.Client().PTTL(t.Context(), k).Val()
							return left > most-Promptly && left <= most
						}, "the key to live for so long")
					}
				}
			}
			if left := lock.Remaining(); left < most/100*98 {
				t.Errorf("a shorter extension has left %v", left)
			}
			_, err := other.TryAcquire(t.Context(), keys[0], LongTTL)
			Is(t, err, redlock.ErrHeld)
			q, ok := errors.AsType[*redlock.QuorumError](err)
			if !ok || q.Granted >= q.Quorum || len(q.Nodes) != n {
				t.Fatalf("%v does not say how the masters voted", err)
			}
			for _, node := range q.Nodes {
				if node.Vote == redlock.Refused && (node.TTL > most || node.TTL < most-Promptly) {
					t.Errorf("%s refuses for %v, want about %v", node.Master, node.TTL, most)
				}
			}
			Must(t, lock.Release(t.Context()))
			for _, k := range keys {
				allHave(t, servers, k, "")
			}
			Must(t, Try(t, other, keys[0]))
		}
	}
}

// All combinations of four masters: each is free or held by another owner, without an end.
func TestOnlyAFreeMajorityIsEnough(t *testing.T) {
	servers, l := Started(t, 4)
	for mask := range 1 << len(servers) {
		t.Run(fmt.Sprintf("%04b", mask), func(t *testing.T) {
			t.Parallel() // for the request timeout a try hopes that a shared vote becomes clear
			k, free := t.Name(), 0
			for i, s := range servers {
				if mask&(1<<i) == 0 {
					free++
					continue
				}
				Must(t, s.Client().Set(t.Context(), k, "foobar", 0).Err())
			}
			lock, err := l.TryAcquire(t.Context(), k, LongTTL)
			if free < redlock.Quorum(len(servers)) {
				Is(t, err, redlock.ErrHeld)
				redistest.Eventually(t, Promptly, func() bool { return withValue(t, servers, k, "") == free },
					"a lost race's keys to be released")
				return
			}
			Must(t, err)
			Must(t, lock.Extend(t.Context(), LongTTL))
			if n := withValue(t, servers, k, lock.Owner()); n < redlock.Quorum(len(servers)) {
				t.Errorf("%d masters have it", n)
			}
			Must(t, lock.Release(t.Context()))
			if n := withValue(t, servers, k, "foobar"); n != len(servers)-free {
				t.Errorf("%d of others' keys are left, want %d", n, len(servers)-free)
			}
		})
	}
}

// SOURCES S0, S1: a holder with a lapsed lock neither extends it nor deletes its successor's.
func TestALapsedLockIsAnotherOwners(t *testing.T) {
	for _, n := range []int{1, 5} {
		servers := redistest.StartN(t, n)
		const ttl = 150 * time.Millisecond
		late := Take(t, Dial(t, servers, redlock.Options{}), Key, ttl)
		other := Dial(t, servers, redlock.Options{})
		next := Take(t, other, Key, LongTTL, redlock.RetryEvery(ttl), redlock.MaxAttempts(5))
		Is(t, late.Err(), redlock.ErrNotHeld)
		Is(t, late.Extend(t.Context(), LongTTL), redlock.ErrNotHeld)
		Is(t, late.Release(t.Context()), redlock.ErrNotHeld)
		Must(t, next.Verify(t.Context()))
		Give(t, next)
	}
}

// attempts is node-redlock's default: one attempt and ten retries.
const attempts = 11

// waitsInVain makes that many attempts with a new Locker, and returns their error.
func waitsInVain(t *testing.T, servers []*redistest.Server, k string, opts ...redlock.Option) error {
	t.Helper()
	var rounds atomic.Int64
	l := Dial(t, servers, redlock.Options{Observer: func(e redlock.Event) {
		if e.Kind == redlock.EventAcquire {
			rounds.Add(1)
		}
	}})
	_, err := l.Acquire(Soon(t), k, LongTTL,
		append(opts, redlock.RetryEvery(5*time.Millisecond), redlock.MaxAttempts(attempts))...)
	// One round is no attempt: the waiter looks for a release that it may have missed before masters could notify it.
	redistest.Eventually(t, Promptly, func() bool { return rounds.Load() >= attempts }, "the attempts to be observed")
	if n := rounds.Load(); n > attempts+1 {
		t.Errorf("%d rounds for %d attempts", n, attempts)
	}
	return err
}

// SOURCES S1: waiting ends after so many attempts, or by its context, and nothing is left of it.
func TestWaitingForAHeldLockEndsCleanly(t *testing.T) {
	servers := redistest.StartN(t, 1)
	l, other := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	lock := Take(t, l, "c1", LongTTL, redlock.AndKeys("c2"))
	OnlyIs(t, waitsInVain(t, servers, "c1"), redlock.ErrHeld)
	OnlyIs(t, waitsInVain(t, servers, "c2", redlock.AndKeys("c3")), redlock.ErrHeld)
	_, err := other.Acquire(Within(t, 50*time.Millisecond), "c1", LongTTL)
	OnlyIs(t, err, redlock.ErrHeld, context.DeadlineExceeded)
	if got := valueOf(t, servers[0], "c3"); got != "" {
		t.Errorf("c3, which would be free, is %q", got)
	}
	Must(t, lock.Verify(t.Context()))
	Give(t, lock)
	for _, k := range []string{"c1", "c2", "c3"} {
		allHave(t, servers, k, "")
	}
}

func TestNoLockIsGrantedWithoutAMaster(t *testing.T) {
	servers := redistest.StartN(t, 1)
	Must(t, servers[0].Stop())
	err := waitsInVain(t, servers, Key)
	Is(t, err, redlock.ErrNoQuorum)
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || len(q.Nodes) != 1 || q.Nodes[0].Vote != redlock.Unknown || q.Nodes[0].Err == nil {
		t.Errorf("%v does not say what is wrong with the master", err)
	}
}

// Work that takes longer than the ttl keeps its lock, and runs alone.
func TestWorkUnderALockKeepsAndReleasesIt(t *testing.T) {
	servers := redistest.StartN(t, 1)
	const ttl = 300 * time.Millisecond
	var inside atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		l := Dial(t, servers, redlock.Options{})
		both.Go(func() {
			err := l.Do(Soon(t), Key, ttl, func(ctx context.Context) error {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are at work", n)
				}
				defer inside.Add(-1)
				owner := valueOf(t, servers[0], Key)
				<-time.After(ttl * 4 / 3)
				if got := valueOf(t, servers[0], Key); got != owner || owner == "" {
					t.Errorf("the lock was %q and is %q", owner, got)
				}
				return ctx.Err()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	allHave(t, servers, Key, "")
}

func TestOneOfAHundredGetsTheLock(t *testing.T) {
	_, l := Started(t, 1)
	locks := make(chan *redlock.Lock, 100)
	Concurrently(cap(locks), func(int) {
		lock, err := l.TryAcquire(t.Context(), Key, LongTTL)
		if err == nil {
			locks <- lock
		} else if !errors.Is(err, redlock.ErrHeld) {
			t.Error(err)
		}
	})
	if len(locks) != 1 {
		t.Fatalf("%d have it", len(locks))
	}
	Give(t, <-locks)
}
