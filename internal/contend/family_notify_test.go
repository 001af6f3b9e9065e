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
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// backoff bounds the pause between two attempts of a waiter that gets no notification, on a starved machine too. A
// waiter that does not try by itself comes after a ttl of 30 s.
const backoff = 10 * time.Second

// comesWithinABackoff releases a lock and then the lock of its waiter, which may come that late and no later.
func comesWithinABackoff(t *testing.T, held *redlock.Lock, w *Waiting) {
	t.Helper()
	began := time.Now()
	Give(t, held)
	Give(t, w.Get(t))
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
	held := Take(t, lockers[0], Key, 30*time.Second, opts...)
	for i := range n {
		w := Wait(t, t.Context(), lockers[(i+1)%2], Key, 30*time.Second, opts...)
		AwaitQueue(t, servers, Key, 1)
		if i < 2 { // until their first waits both did not listen
			redistest.Eventually(t, Promptly, func() bool { return Listening(t, servers) == (i+1)*len(servers) },
				"the waiter to listen")
		}
		began := time.Now()
		Give(t, held)
		held = w.Get(t)
		gaps = append(gaps, w.At.Sub(began))
	}
	Give(t, held)
	slices.Sort(gaps)
	return gaps
}

// SOURCES S3: waiting is woken by a published release. The next attempt without one would come 100 to 200 ms later.
func TestS3AWaiterInAnotherLockerGetsTheLockWithTheRelease(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for name, opt := range map[string]redlock.Option{
		"plain": redlock.AndKeys(Key), "fenced": redlock.Fenced(), "exclusive": redlock.Exclusive(),
	} {
		t.Run(name, func(t *testing.T) {
			lockers := [2]*redlock.Locker{Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})}
			gaps := handoffs(t, servers, lockers, 20, opt)
			for _, l := range lockers {
				CloseLocker(t, l)
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
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	for range 3 {
		held := Take(t, a, Key, 30*time.Second)
		w := Wait(t, t.Context(), b, Key, 30*time.Second)
		AwaitQueue(t, servers, Key, 1)
		AwaitEars(t, servers, 1)
		TellAll(t, servers, "del", "redlock:queue:{"+Key+"}") // whoever is called from now on is not there any more
		TellAll(t, servers, "client", "kill", "type", "pubsub")
		comesWithinABackoff(t, held, w)
	}
}

func TestSubscriptionsSurviveReconnects(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, Key, LongTTL)
	Everywhere(t, servers, held)
	w := Wait(t, t.Context(), b, Key, LongTTL)
	AwaitEars(t, servers, 1)
	before := subscriptions(t, servers)
	TellAll(t, servers, "client", "kill", "type", "pubsub")
	redistest.Eventually(t, Promptly, func() bool { return subscriptions(t, servers) == before+3 },
		"the waiter to subscribe anew")
	AwaitEars(t, servers, 1)
	servers[0].Restart()
	AwaitEars(t, servers, 1)
	AwaitQueue(t, servers, Key, 1) // also on the one that forgot it
	comesWithinABackoff(t, held, w)
}

// subscriptions counts the SUBSCRIBE commands on all servers.
func subscriptions(tb testing.TB, servers []*redistest.Server) int {
	tb.Helper()
	return Calls(tb, servers, "subscribe")
}

func TestALockerListensOnOneConnectionAMasterAndOnlyWhileItWaits(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	const keys, waiters = 4, 3
	var held []*redlock.Lock
	for i := range keys {
		held = append(held, Take(t, a, fmt.Sprint("key", i), LongTTL))
	}
	if n := Listening(t, servers); n != 0 {
		t.Errorf("%d subscriptions for locks that were free", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []*Waiting
	for i := range keys * waiters {
		all = append(all, Wait(t, ctx, b, fmt.Sprint("key", i%keys), LongTTL))
	}
	for i := range keys {
		AwaitQueue(t, servers, fmt.Sprint("key", i), 1)
	}
	AwaitEars(t, servers, 1)
	if n := subscriptions(t, servers); n != len(servers) {
		t.Errorf("%d subscriptions were made for %d waiters, want one a master", n, len(all))
	}
	cancel()
	for _, w := range all {
		Is(t, w.Fail(t), context.Canceled)
	}
	left := time.Now()
	AwaitEars(t, servers, 0)
	if after := time.Since(left); after < time.Second {
		t.Errorf("the subscriptions ended %v after the last waiter: they should linger for the next", after)
	}
	Give(t, held...)
}

func TestAClosedLockerListensNoMore(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, Key, LongTTL)
	w := Wait(t, t.Context(), b, Key, LongTTL)
	AwaitEars(t, servers, 1)
	Must(t, b.Close(t.Context()))
	Is(t, w.Fail(t), redlock.ErrClosed)
	AwaitEars(t, servers, 0)
	Give(t, held)
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
					lock, err := l.Acquire(ctx, Key, 10*time.Second)
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
	holders, others := Dial(t, servers, patient), Dial(t, servers, patient)
	held := Take(t, holders, Key, time.Minute)
	redistest.Eventually(t, 20*time.Second, func() bool { return Calls(t, servers, "set") == len(servers) },
		"the third master has the key, too")
	reads, asked := Calls(t, servers, "get"), Calls(t, servers, "set")
	const attempts = 5
	for range attempts {
		_, err := others.TryAcquire(t.Context(), Key, time.Minute)
		Is(t, err, redlock.ErrHeld)
	}
	CloseLocker(t, others) // waits for all that is in flight: a master must not read it after the release
	Give(t, held)
	CloseLocker(t, holders)
	// An attempt reads the key once to report its holder, and so does the release that finds it. On a busy machine, a
	// master that is far behind the others is spared attempts.
	asked = Calls(t, servers, "set") - asked
	if asked < 2*attempts || asked > 3*attempts {
		t.Fatalf("%d attempts asked 3 masters %d times", attempts, asked)
	}
	if got, want := Calls(t, servers, "get")-reads, asked+len(servers); got != want {
		t.Errorf("%d requests and a release read the key %d times on 3 masters, want %d", asked, got, want)
	}
}
