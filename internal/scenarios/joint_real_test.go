package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Two sets of masters at a time (NewJoint), on real servers. The root has failures of single masters, in memory.

// exchange is the Lockers of three processes while masters are exchanged: one with the old set, one with both, one with
// the new.
type exchange struct{ before, during, after *redlock.Locker }

// exchanges lists ways to exchange masters: the positions of the old and of the new masters among six servers.
var exchanges = map[string][2][]int{
	"one is replaced":    {{0, 1, 2}, {0, 1, 3}},
	"two are replaced":   {{0, 1, 2}, {0, 3, 4}},
	"all are replaced":   {{0, 1, 2}, {3, 4, 5}},
	"three become five":  {{0, 1, 2}, {0, 1, 2, 3, 4}},
	"five become three":  {{0, 1, 2, 3, 4}, {2, 3, 4}},
	"one becomes three":  {{0}, {1, 2, 3}},
	"an even number":     {{0, 1}, {0, 1, 2, 3}},
	"one more, replaced": {{0, 1, 2}, {1, 3, 4, 5}},
}

func these(servers []*redistest.Server, at []int) []*redistest.Server {
	some := make([]*redistest.Server, len(at))
	for i, n := range at {
		some[i] = servers[n]
	}
	return some
}

func exchanging(tb testing.TB, servers []*redistest.Server, how [2][]int, opts redlock.Options) exchange {
	tb.Helper()
	before, after := these(servers, how[0]), these(servers, how[1])
	return exchange{dial(tb, before, opts), dialJoint(tb, before, after, opts), dial(tb, after, opts)}
}

// neighbours lists pairs of processes that may run at the same time. The first process holds the lock that the second
// one waits for.
func (x exchange) neighbours() map[string][2]*redlock.Locker {
	return map[string][2]*redlock.Locker{
		"old, joint": {x.before, x.during}, "joint, old": {x.during, x.before},
		"joint, new": {x.during, x.after}, "new, joint": {x.after, x.during},
	}
}

func TestLockersOfNeighbouringConfigurationsExcludeEachOther(t *testing.T) {
	servers := redistest.StartN(t, 6)
	for name, how := range exchanges {
		x := exchanging(t, servers, how, redlock.Options{})
		other := dialJoint(t, these(servers, how[0]), these(servers, how[1]), redlock.Options{})
		pairs := x.neighbours()
		pairs["joint, joint"] = [2]*redlock.Locker{x.during, other}
		for who, pair := range pairs {
			for kind, c := range map[string]struct{ holds, wants []redlock.Option }{
				"plain":        {},
				"fenced":       {[]redlock.Option{redlock.Fenced()}, []redlock.Option{redlock.Fenced()}},
				"reader first": {[]redlock.Option{redlock.Shared()}, []redlock.Option{redlock.Exclusive()}},
				"writer first": {[]redlock.Option{redlock.Exclusive()}, []redlock.Option{redlock.Shared()}},
				"reentrant": {
					[]redlock.Option{redlock.Reentrant("one")}, []redlock.Option{redlock.Reentrant("another")},
				},
				"several keys": {
					[]redlock.Option{redlock.AndKeys("second")}, []redlock.Option{redlock.AndKeys("third")},
				},
			} {
				k := name + who + kind
				lock, err := pair[0].Acquire(within(t, promptly), k, longTTL, c.holds...)
				must(t, err)
				if _, err = pair[1].TryAcquire(t.Context(), k, longTTL, c.wants...); err == nil {
					t.Errorf("%s: %s: %s: two holders", name, who, kind)
				}
				is(t, err, redlock.ErrHeld)
				must(t, lock.Release(t.Context()))
				next, err := pair[1].Acquire(within(t, promptly), k, longTTL, c.wants...)
				must(t, err)
				must(t, next.Release(t.Context()))
			}
		}
	}
}

// The danger is real: processes with the old and with the new set alone do not exclude each other.
func TestOldAndNewMastersAtOnceHaveTwoHolders(t *testing.T) {
	x := exchanging(t, redistest.StartN(t, 6), exchanges["all are replaced"], redlock.Options{})
	first, second := acquire(t, x.before, longTTL), acquire(t, x.after, longTTL)
	must(t, first.Release(t.Context()))
	must(t, second.Release(t.Context()))
}

func TestReadersAndReentrantHoldsOfNeighboursStandTogether(t *testing.T) {
	x := exchanging(t, redistest.StartN(t, 6), exchanges["two are replaced"], redlock.Options{})
	for who, pair := range x.neighbours() {
		for _, opt := range []redlock.Option{redlock.Shared(), redlock.Reentrant("job")} {
			first := acquire(t, pair[0], longTTL, opt)
			second, err := pair[1].Acquire(within(t, promptly), key, longTTL, opt)
			if err != nil {
				t.Fatalf("%s: %v", who, err)
			}
			must(t, first.Release(t.Context()))
			must(t, second.Verify(t.Context()))
			must(t, second.Release(t.Context()))
		}
	}
}

func TestTokensRiseFromOldOverJointToNew(t *testing.T) {
	servers := redistest.StartN(t, 6)
	for name, how := range exchanges {
		fast := exchanging(t, servers, how, redlock.Options{Clock: hourAhead()})
		// which have seen none of the tokens, and propose smaller ones
		x := exchanging(t, servers, how, redlock.Options{})
		last := uint64(0)
		for i, l := range []*redlock.Locker{
			fast.before, x.before, x.during, x.during, x.before, x.during, x.after, x.during, x.after,
		} {
			lock, err := l.Acquire(within(t, promptly), name, longTTL, redlock.Fenced())
			must(t, err)
			if lock.Token() <= last {
				t.Errorf("%s: token %d after %d at step %d", name, lock.Token(), last, i)
			}
			last = lock.Token()
			must(t, lock.Release(t.Context()))
		}
	}
}

func TestHolderSeesTheHoldsOfNeighbours(t *testing.T) {
	x := exchanging(t, redistest.StartN(t, 6), exchanges["all are replaced"], redlock.Options{})
	for who, pair := range x.neighbours() {
		for _, opts := range [][]redlock.Option{nil, {redlock.Shared()}} {
			lock := acquire(t, pair[0], longTTL, opts...)
			h, err := pair[1].Holder(t.Context(), key)
			if err != nil || !h.Held || h.ID != lock.ID() || h.Holds != 1 || h.TTL < longTTL/2 {
				t.Errorf("%s: Holder returned %+v, %v; held by %s", who, h, err, lock.ID())
			}
			must(t, lock.Release(t.Context()))
			redistest.Eventually(t, promptly, func() bool {
				h, err := pair[1].Holder(t.Context(), key)
				return err == nil && !h.Held
			}, who+": the key to be free")
		}
	}
}

// A waiter with a backoff of a minute depends on a notification, no matter which masters the release has reached.
func TestAWaiterIsWokenByTheReleaseOfANeighbour(t *testing.T) {
	servers := redistest.StartN(t, 6)
	for _, name := range []string{"one is replaced", "all are replaced", "three become five"} {
		x := exchanging(t, servers, exchanges[name], redlock.Options{})
		other := dialJoint(t, these(servers, exchanges[name][0]), these(servers, exchanges[name][1]), redlock.Options{})
		pairs := x.neighbours()
		pairs["joint, joint"] = [2]*redlock.Locker{x.during, other}
		for who, pair := range pairs {
			if took := handoff(t, servers, pair[0], pair[1], name+who); took > promptly {
				t.Errorf("%s: %s: the lock came %v after its release", name, who, took)
			}
		}
	}
}

// handoff measures the time from a release until a waiter that asks every minute gets the lock.
func handoff(tb testing.TB, servers []*redistest.Server, holds, wants *redlock.Locker, k string) time.Duration {
	tb.Helper()
	lock, err := holds.Acquire(within(tb, promptly), k, longTTL)
	must(tb, err)
	got := make(chan error, 1)
	var at time.Time
	go func() {
		next, err := wants.Acquire(tb.Context(), k, longTTL, redlock.RetryEvery(longTTL))
		at = time.Now()
		if err == nil {
			err = next.Release(context.WithoutCancel(tb.Context()))
		}
		got <- err
	}()
	redistest.Eventually(tb, promptly, func() bool {
		queued := int64(0)
		for _, s := range servers {
			queued += s.Client().Exists(tb.Context(), single.QueueKey(k)).Val()
		}
		return queued >= 2
	}, "the waiter to have queued up")
	released := time.Now()
	must(tb, lock.Release(tb.Context()))
	must(tb, <-got)
	return at.Sub(released)
}
