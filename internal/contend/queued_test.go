package contend_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// queueing is a fake master that keeps the Locker's places in arrival queues, as the scripts do.
type queueing struct {
	*Fake
	mu       sync.Mutex
	queues   map[string]bool          // the keys in whose queue the Locker stands
	unqueued map[*single.Request]bool // releases that said that it does not
	saved    int                      // such releases, where it did not
	needed   int                      // releases that took it out
	aside    bool                     // requests of a batch go each its own way
}

func (m *queueing) Do(ctx context.Context, batch []*single.Call) {
	for i, c := range batch {
		m.mu.Lock()
		if c.Unqueued {
			m.unqueued[c.Request] = true
		}
		m.mu.Unlock()
		if !m.aside {
			m.Fake.Do(ctx, batch[i:i+1]) // in their order, as a connection does
		}
	}
	if m.aside {
		m.Fake.Do(ctx, batch)
	}
}

// performed enters and leaves queues. A SET NX that takes a free key removes no waiter from the queue.
func (m *queueing) performed(r *single.Request, reply single.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range r.Keys {
		switch {
		case r.Waiter == "":
		case r.Op == single.Acquire && reply.Outcome == single.Refused:
			m.queues[k] = true
		case r.Op == single.Release && m.unqueued[r]:
			m.saved++
		case r.Op == single.Release || r.Op == single.Leave:
			if m.queues[k] {
				m.needed++
			}
			m.queues[k] = false
		}
	}
}

// Some releases say that their waiter is in no queue. Such a release travels with others and removes no waiter from a
// queue. If the statement were wrong, the position would stay when no goroutine waits any more. Then a notification
// would be lost, which costs the next waiter a backoff.
func TestAReleaseThatDoesNotReadTheQueueLeavesNoWaiterInIt(t *testing.T) {
	saved, needed, seeds := 0, 0, soak.Or(150, 1500)
	for seed := range uint64(seeds) {
		Bubble(t, 3, func(t *testing.T, masters Fakes) {
			all, over := queues(masters, false)
			for i, m := range masters {
				m.Behave(erratic(rand.New(rand.NewPCG(seed, uint64(i)))))
			}
			l, err := redlock.New(over, redlock.Options{Clock: NewClock(), RequestTimeout: 50 * time.Millisecond})
			Must(t, err)
			var everybody sync.WaitGroup
			for i := range uint64(4) {
				everybody.Go(func() { useKeys(t, l, 4*seed+i) })
			}
			everybody.Go(func() { takeAway(masters, seed) })
			everybody.Wait()
			Must(t, l.Close(t.Context()))
			for _, m := range all {
				for k, queued := range m.queues {
					if queued {
						t.Errorf("seed %d: %s: the Locker is still in the queue of %q", seed, m.Name(), k)
					}
				}
				saved, needed = saved+m.saved, needed+m.needed
			}
		})
	}
	if saved < seeds/5 || needed < seeds/5 {
		t.Errorf("no variety: %d releases did not look, %d removed a waiter", saved, needed)
	}
}

// erratic takes a little time, so that requests stay in their order. It always answers, because a Locker can't leave
// the queue of a master that does not answer.
func erratic(random *rand.Rand) func(*single.Request) Act {
	var mu sync.Mutex
	return func(*single.Request) Act {
		mu.Lock()
		defer mu.Unlock()
		some := func() time.Duration { return time.Duration(random.IntN(400)) * time.Microsecond }
		return Act{Before: some(), After: some()}
	}
}

// takeAway is another process that sets the keys.
func takeAway(masters Fakes, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 10))
	for range 20 {
		Pass(time.Duration(random.IntN(5)) * time.Millisecond)
		masters[random.IntN(len(masters))].Take("somebody", time.Duration(random.IntN(10))*time.Millisecond)
	}
}

// useKeys acquires, holds and releases two keys in turn, and cancels an acquisition now and then.
func useKeys(t *testing.T, l *redlock.Locker, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range 2 {
		Pass(time.Duration(random.IntN(8)) * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(40))*time.Millisecond)
		keys, opts := []string{Key, "another"}, []redlock.Option(nil)
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		if random.IntN(4) == 0 {
			opts = append(opts, redlock.AndKeys(keys[1]))
		}
		lock, err := l.Acquire(ctx, keys[0], 10*time.Second, opts...)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			continue
		}
		Pass(time.Duration(random.IntN(2)*random.IntN(5)) * time.Millisecond)
		if random.IntN(3) == 0 {
			_ = lock.Extend(t.Context(), 10*time.Second)
		}
		_ = lock.Release(t.Context()) // somebody may have taken the key away
	}
}
