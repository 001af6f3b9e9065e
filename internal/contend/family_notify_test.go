package contend_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// backoff bounds the pause between two attempts of a waiter that gets no notification, on a starved machine too. A
// waiter that does not try by itself comes after a ttl of 30 s.
const backoff = 10 * time.Second

// comesWithinABackoff releases a lock and then the lock of its waiter, which may come that late and no later.
func comesWithinABackoff(t *testing.T, held *redlock.Lock, w *waiting) {
	t.Helper()
	began := time.Now()
	give(t, held)
	give(t, w.Get(t))
	if took := w.At.Sub(began); took > backoff {
		t.Errorf("the waiter came %v after the release", took)
	}
}

// handoffs lets two Lockers take the key in turns: one waits while the other holds it. It returns the time from the
// beginning of each release until the other Locker had the lock.
func handoffs(t *testing.T, servers []*redistest.Server, lockers [2]*redlock.Locker, n int,
	opts ...redlock.Option,
) []time.Duration {
	t.Helper()
	var gaps []time.Duration
	held := take(t, lockers[0], key, 30*time.Second, opts...)
	for i := range n {
		w := wait(t, t.Context(), lockers[(i+1)%2], key, 30*time.Second, opts...)
		awaitQueue(t, servers, key, 1)
		if i < 2 { // until their first waits both did not listen
			redistest.Eventually(t, promptly, func() bool { return listening(t, servers) == (i+1)*len(servers) },
				"the waiter to listen")
		}
		began := time.Now()
		give(t, held)
		held = w.Get(t)
		gaps = append(gaps, w.At.Sub(began))
	}
	give(t, held)
	slices.Sort(gaps)
	return gaps
}

// SOURCES S3: waiting is woken by a published release. The next attempt without one would come 100 to 200 ms later.
func TestS3AWaiterInAnotherLockerGetsTheLockWithTheRelease(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for name, opt := range map[string]redlock.Option{
		"plain": redlock.AndKeys(key), "fenced": redlock.Fenced(), "exclusive": redlock.Exclusive(),
	} {
		t.Run(name, func(t *testing.T) {
			lockers := [2]*redlock.Locker{dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})}
			gaps := handoffs(t, servers, lockers, 20, opt)
			for _, l := range lockers {
				closeLocker(t, l)
			}
			t.Logf("median %v, longest %v", gaps[10], gaps[19])
			if gaps[10] > 50*time.Millisecond {
				t.Errorf("half of the handoffs took %v and more: %v", gaps[10], gaps)
			}
		})
	}
}

// Hazard 30: a waiter that gets no notification tries again after a backoff, not after a ttl.
func TestHazard30ALostNotificationCostsABackoff(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	for range 3 {
		held := take(t, a, key, 30*time.Second)
		w := wait(t, t.Context(), b, key, 30*time.Second)
		awaitQueue(t, servers, key, 1)
		awaitEars(t, servers, 1)
		tellAll(t, servers, "del", "redlock:queue:{"+key+"}") // whoever is called from now on is not there any more
		tellAll(t, servers, "client", "kill", "type", "pubsub")
		comesWithinABackoff(t, held, w)
	}
}

func TestSubscriptionsSurviveReconnects(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, longTTL)
	everywhere(t, servers, held)
	w := wait(t, t.Context(), b, key, longTTL)
	awaitEars(t, servers, 1)
	before := subscriptions(t, servers)
	tellAll(t, servers, "client", "kill", "type", "pubsub")
	redistest.Eventually(t, promptly, func() bool { return subscriptions(t, servers) == before+3 },
		"the waiter to subscribe anew")
	awaitEars(t, servers, 1)
	servers[0].Restart()
	awaitEars(t, servers, 1)
	awaitQueue(t, servers, key, 1) // also on the one that forgot it
	comesWithinABackoff(t, held, w)
}

// subscriptions counts the SUBSCRIBE commands on all servers.
func subscriptions(tb testing.TB, servers []*redistest.Server) int {
	tb.Helper()
	return calls(tb, servers, "subscribe")
}

func TestALockerListensOnOneConnectionAMasterAndOnlyWhileItWaits(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	const keys, waiters = 4, 3
	var held []*redlock.Lock
	for i := range keys {
		held = append(held, take(t, a, fmt.Sprint("key", i), longTTL))
	}
	if n := listening(t, servers); n != 0 {
		t.Errorf("%d subscriptions for locks that were free", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []*waiting
	for i := range keys * waiters {
		all = append(all, wait(t, ctx, b, fmt.Sprint("key", i%keys), longTTL))
	}
	for i := range keys {
		awaitQueue(t, servers, fmt.Sprint("key", i), 1)
	}
	awaitEars(t, servers, 1)
	if n := subscriptions(t, servers); n != len(servers) {
		t.Errorf("%d subscriptions were made for %d waiters, want one a master", n, len(all))
	}
	cancel()
	for _, w := range all {
		is(t, w.Fail(t), context.Canceled)
	}
	left := time.Now()
	awaitEars(t, servers, 0)
	if after := time.Since(left); after < time.Second {
		t.Errorf("the subscriptions ended %v after the last waiter: they should linger for the next", after)
	}
	give(t, held...)
}

func TestAClosedLockerListensNoMore(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, longTTL)
	w := wait(t, t.Context(), b, key, longTTL)
	awaitEars(t, servers, 1)
	must(t, b.Close(t.Context()))
	is(t, w.Fail(t), redlock.ErrClosed)
	awaitEars(t, servers, 0)
	give(t, held)
}

// jain is Jain's index of fairness: 1 when all have got the same, 1/n when one has got everything.
func jain(counts []int) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	return sum * sum / (float64(len(counts)) * squares)
}

func TestManyLockersShareAKeyFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lockers, locks = 16, 480
		masters := redlocktest.New(t, redlocktest.Count(3))
		masters.SlowDown(200 * time.Microsecond)
		counts, total := make([]int, lockers), 0 // guarded by the lock
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var all sync.WaitGroup
		for i := range lockers {
			l := masters.Locker(t, redlock.Options{})
			all.Go(func() {
				for {
					lock, err := l.Acquire(ctx, key, 10*time.Second)
					if err != nil {
						return
					}
					counts[i]++
					if total++; total >= locks {
						stop()
					}
					_ = lock.Release(ctx)
				}
			})
		}
		all.Wait()
		if total < locks {
			t.Errorf("%d locks in a minute, want %d", total, locks)
		}
		if fair := jain(counts); fair < 0.9 {
			t.Errorf("Jain's index is %.3f, want above 0.9: %v", fair, counts)
		}
		if greedy := jain([]int{locks, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); greedy > 0.1 {
			t.Errorf("control: the index of a greedy Locker is %.3f", greedy)
		}
	})
}

// A refusal is an answer: nothing was set, so nothing has to be removed, and waiters spare the masters a release.
func TestARefusedAcquisitionIsNotReleased(t *testing.T) {
	servers := redistest.StartN(t, 3)
	// A request that is not answered in time is released, since the master may have granted it.
	patient := redlock.Options{RequestTimeout: 20 * time.Second}
	holders, others := dial(t, servers, patient), dial(t, servers, patient)
	held := take(t, holders, key, time.Minute)
	redistest.Eventually(t, 20*time.Second, func() bool { return calls(t, servers, "set") == len(servers) },
		"the third master has the key, too")
	reads, asked := calls(t, servers, "get"), calls(t, servers, "set")
	const attempts = 5
	for range attempts {
		_, err := others.TryAcquire(t.Context(), key, time.Minute)
		is(t, err, redlock.ErrHeld)
	}
	closeLocker(t, others) // waits for all that is in flight: a master must not read it after the release
	give(t, held)
	closeLocker(t, holders)
	// An attempt reads the key once to report its holder, and so does the release that finds it. On a busy machine, a
	// master that is far behind the others is spared attempts.
	asked = calls(t, servers, "set") - asked
	if asked < 2*attempts || asked > 3*attempts {
		t.Fatalf("%d attempts asked 3 masters %d times", attempts, asked)
	}
	if got, want := calls(t, servers, "get")-reads, asked+len(servers); got != want {
		t.Errorf("%d requests and a release read the key %d times on 3 masters, want %d", asked, got, want)
	}
}
