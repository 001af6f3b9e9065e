package hold_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// freeAfter takes a lock with a MinHold of 2 s and a ttl of 10 s, and releases it early. It returns the time from the
// acquisition until another owner gets the key.
func freeAfter(t *testing.T,
	before, release func(t *testing.T, masters []*memmaster.Master, lock *redlock.Lock),
) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		l, began := memLocker(t, masters), time.Now()
		lock, err := l.Acquire(t.Context(), "job", 10*time.Second, redlock.MinHold(2*time.Second))
		must(t, err)
		pass(time.Millisecond)
		before(t, masters, lock)
		_ = lock.Release(t.Context())
		release(t, masters, lock)
		next, err := memLocker(t, masters).Acquire(t.Context(), "job", 10*time.Second)
		must(t, err)
		took = time.Since(began)
		must(t, next.Release(t.Context()))
	})
	return took
}

func behave(masters []*memmaster.Master, op single.Op, fate memmaster.Fate) {
	for _, m := range masters {
		m.Behave(func(r *single.Request) memmaster.Fate {
			if r.Op == op {
				return fate
			}
			return memmaster.Fate{}
		})
	}
}

// A request that was sent under the lock may arrive when the key is only kept. Then it must not prolong the key.
func TestALateExtensionDoesNotProlongAKeptKey(t *testing.T) {
	took := freeAfter(t, func(t *testing.T, masters []*memmaster.Master, lock *redlock.Lock) {
		behave(masters, single.Extend, memmaster.Fate{Before: 1500 * time.Millisecond})
		if err := lock.Extend(t.Context(), 10*time.Second); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("extend: %v", err)
		}
	}, func(t *testing.T, masters []*memmaster.Master, lock *redlock.Lock) {
		pass(time.Millisecond)
		if masters[0].Owner("job") == lock.Owner() || masters[0].Owner("job") == "" {
			t.Errorf("the kept key's owner is %q", masters[0].Owner("job"))
		}
		behave(masters, single.Extend, memmaster.Fate{})
	})
	if took < 2*time.Second || took > 2500*time.Millisecond {
		t.Errorf("MinHold 2s, and another owner has the key after %v", took)
	}
}

// If a master has not received a release that keeps its keys, the Locker asks the master again. The key is kept no
// longer than if the release had arrived.
func TestAReleaseThatKeepsItsKeysIsAskedForAgain(t *testing.T) {
	for name, c := range map[string]struct{ lost, want time.Duration }{
		"while they are to be kept": {time.Second, 2 * time.Second},
		"when that is over":         {4 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			took := freeAfter(t, func(_ *testing.T, masters []*memmaster.Master, _ *redlock.Lock) {
				behave(masters, single.Release, memmaster.Fate{Lost: true})
			}, func(_ *testing.T, masters []*memmaster.Master, _ *redlock.Lock) {
				pass(c.lost - 500*time.Millisecond) // which Release has taken
				behave(masters, single.Release, memmaster.Fate{})
			})
			if took < c.want || took > c.want+time.Second {
				t.Errorf("another owner has the key after %v, want %v", took, c.want)
			}
		})
	}
}

// A waiter that asks seldom gets a notification that the key is kept, and for how long, as it gets a notification of
// a release.
func TestAWaiterWithALongRetryEveryGetsAKeptKeyWhenItIsFree(t *testing.T) {
	t.Parallel()
	for name, sameProcess := range map[string]bool{"of another process": false, "of this process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			var refusals atomic.Int32
			// it asks once, so every master has to hear of it on a busy machine
			l := dial(t, servers, redlock.Options{RequestTimeout: 20 * time.Second})
			waiter := l
			if !sameProcess {
				waiter = dial(t, servers,
					redlock.Options{RequestTimeout: 20 * time.Second, Observer: func(e redlock.Event) {
						if e.Kind == redlock.EventAcquire && errors.Is(e.Err, redlock.ErrHeld) {
							refusals.Add(1)
						}
					}})
			}
			const least = 2 * time.Second
			lock, err := l.Acquire(t.Context(), name, 10*time.Minute, redlock.MinHold(least))
			must(t, err)
			began := time.Now()
			type result struct {
				lock *redlock.Lock
				err  error
			}
			got := make(chan result, 1)
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			go func() {
				next, err := waiter.Acquire(ctx, name, time.Minute, redlock.RetryEvery(5*time.Minute),
					redlock.MaxAttempts(2))
				got <- result{next, err}
			}()
			redistest.Eventually(t, 10*time.Second, func() bool { // on two masters: one that is behind is not asked
				n := 0
				for _, s := range servers {
					if s.Client().ZCard(t.Context(), single.QueueKey(name)).Val() > 1 &&
						len(s.Client().PubSubChannels(t.Context(), single.ChannelPrefix+"*").Val()) > 0 {
						n++
					}
				}
				return sameProcess || n > 1
			}, "the waiter to be in the queue, and listen")
			must(t, lock.Release(t.Context()))
			next := <-got
			if next.err != nil {
				t.Fatalf("after %v: %v", time.Since(began), next.err)
			}
			if refusals.Load() > 10 {
				t.Errorf("the waiter was refused %d times", refusals.Load())
			}
			must(t, next.lock.Release(t.Context()))
		})
	}
}
