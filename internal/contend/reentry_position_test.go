package contend_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// A Locker has one entry per key in a master's queue, under one name for all of its waiters. A request that removes
// the entry for one waiter may arrive after the request that adds it for the next waiter. This happens if masters are
// some milliseconds away: they receive the two requests on different connections.

// detour is a master that some requests take longer to reach than others.
type detour struct {
	*redlocktest.Master
	way func(*single.Request) time.Duration
}

func (m detour) Do(ctx context.Context, batch []*single.Call) {
	var all sync.WaitGroup
	for i, c := range batch {
		all.Go(func() {
			Pass(m.way(c.Request))
			m.Master.Do(ctx, batch[i:i+1])
			Pass(3 * time.Millisecond)
		})
	}
	all.Wait()
}

// farAway runs body with three masters that requests of this kind reach in 20 ms, others in 3 ms, and a Locker over
// them that listens already.
func farAway(t *testing.T, slow single.Op,
	body func(t *testing.T, masters redlocktest.Masters, l, other *redlock.Locker),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		all := masters.All()
		for i, m := range masters {
			all[i] = detour{m, func(r *single.Request) time.Duration {
				if r.Op == slow {
					return 20 * time.Millisecond
				}
				return 3 * time.Millisecond
			}}
		}
		l := LockerOver(t, all, redlock.Options{})
		masters.Hold("another") // so that the Locker listens all the time
		ctx, cancel := context.WithCancel(t.Context())
		listens := Wait(t, ctx, l, "another", LongTTL)
		Settle(time.Second)
		body(t, masters, l, masters.Locker(t, redlock.Options{}))
		cancel()
		_ = listens.Fail(t)
	})
}

// comesAtOnce fails the test if a waiter that asks seldom comes late.
func comesAtOnce(t *testing.T, w *Waiting, released time.Time) {
	t.Helper()
	Settle(30 * time.Second)
	Must(t, w.Get(t).Release(t.Context()))
	if took := w.At.Sub(released); took > atOnce {
		t.Errorf("the waiter came %v after the release", took)
	}
}

// A waiter leaves the masters' queues when its context ends, so that no release notifies it.
func TestACancelledWaiterIsNotNotified(t *testing.T) {
	for _, opt := range []redlock.Option{redlock.AndKeys(Key), redlock.Exclusive()} {
		InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
			held := Acquire(t, l, time.Hour, opt)
			ctx, cancel := context.WithCancel(t.Context())
			first := Wait(t, ctx, masters.Locker(t, redlock.Options{}), Key, LongTTL, opt)
			Settle(time.Second)
			second := Wait(t, t.Context(), masters.Locker(t, redlock.Options{}), Key, LongTTL, opt,
				redlock.RetryEvery(time.Hour))
			Settle(time.Second)
			cancel()
			_ = first.Fail(t)
			Settle(time.Second)
			released := time.Now()
			Must(t, held.Release(t.Context()))
			comesAtOnce(t, second, released)
		})
	}
}

func TestAWaiterForSeveralKeysIsNotifiedForEachKey(t *testing.T) {
	for _, same := range []bool{true, false} {
		InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
			other := l
			if !same {
				other = masters.Locker(t, redlock.Options{})
			}
			held := Take(t, l, "c", time.Hour)
			w := Wait(t, t.Context(), other, "a", LongTTL, redlock.AndKeys("b", "c"), redlock.RetryEvery(time.Hour))
			Settle(time.Minute)
			released := time.Now()
			Must(t, held.Release(t.Context()))
			comesAtOnce(t, w, released)
		})
	}
}

func TestACancelledWaiterTakesNoPositionFromTheNextOfItsProcess(t *testing.T) {
	farAway(t, single.Leave, func(t *testing.T, masters redlocktest.Masters, l, _ *redlock.Locker) {
		masters.Hold(Key)
		ctx, cancel := context.WithCancel(t.Context())
		first := Wait(t, ctx, l, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		cancel()
		_ = first.Fail(t)
		// its attempt overtakes the departure
		next := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		released := time.Now()
		masters.Release(Key)
		comesAtOnce(t, next, released)
	})
}

// The request to leave reaches one master long after the others. Another master has no holder: there the next
// waiter's attempt is granted, and a granted attempt does not enter a queue. So the Locker is in the queue of one
// master out of three, unless it checks its position again after the last master has answered.
func TestADepartureThatIsLateOnOneMasterTakesNoPositionFromTheNext(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		all, over := queues(masters, true)
		for i, m := range masters {
			m.Behave(func(r *single.Request) Act {
				switch {
				case r.Op == single.Leave && i == 2:
					return Act{Before: 20 * time.Millisecond, After: 3 * time.Millisecond}
				case r.Op == single.Release: // or the next attempt would be refused by what the one before was granted
					return Act{Before: time.Millisecond, After: 3 * time.Millisecond}
				}
				return Act{Before: 3 * time.Millisecond, After: 3 * time.Millisecond}
			})
		}
		masters[0].Take("another", 24*time.Hour)
		masters[2].Take("another", 24*time.Hour)
		l, err := redlock.New(over, redlock.Options{Clock: NewClock(), RequestTimeout: time.Second})
		Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		first := Wait(t, ctx, l, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		cancel()
		_ = first.Fail(t)
		Pass(time.Millisecond) // so that they travel one by one
		ctx, cancel = context.WithCancel(t.Context())
		next := Wait(t, ctx, l, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		if n := standsIn(all); n < 2 {
			t.Errorf("the Locker is in the queues of %d masters", n)
		}
		cancel()
		_ = next.Fail(t)
		Must(t, l.Close(t.Context()))
	})
}

// queues makes masters that know whether the Locker is in their queues. If aside is true, each request of a batch
// travels separately.
func queues(masters Fakes, aside bool) (all []*queueing, over []redlock.Master) {
	for _, m := range masters {
		q := &queueing{Fake: m, queues: make(map[string]bool), unqueued: make(map[*single.Request]bool), aside: aside}
		all, over, m.Performed = append(all, q), append(over, q), q.performed
	}
	return all, over
}

// standsIn counts the masters that have the Locker in their queues for key.
func standsIn(all []*queueing) (n int) {
	for _, m := range all {
		m.mu.Lock()
		if m.queues[Key] {
			n++
		}
		m.mu.Unlock()
	}
	return n
}

func TestAReleaseTakesNoPositionFromTheNextOfItsProcess(t *testing.T) {
	farAway(t, single.Release, func(t *testing.T, masters redlocktest.Masters, l, other *redlock.Locker) {
		masters.Hold(Key)
		holder := Wait(t, t.Context(), l, Key, LongTTL)
		Settle(time.Second)
		masters.Release(Key)
		lock := holder.Get(t)
		rival := Wait(t, t.Context(), other, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		released := make(chan error, 1)
		go func() { released <- lock.Release(t.Context()) }()
		Pass(time.Millisecond)
		// its attempt overtakes the release
		next := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Must(t, <-released)
		theirs := rival.Get(t)
		Settle(time.Second)
		began := time.Now()
		Must(t, theirs.Release(t.Context()))
		comesAtOnce(t, next, began)
	})
}

// unreleased is a master that receives no release while its flag is set.
type unreleased struct {
	*redlocktest.Master
	to *atomic.Bool
}

func (m unreleased) Do(ctx context.Context, batch []*single.Call) {
	for i, c := range batch {
		if c.Request.Op == single.Release && m.to.Load() {
			c.Err = errors.New("cut off")
			continue
		}
		m.Master.Do(ctx, batch[i:i+1])
	}
}

// No master has received a release, and a goroutine of the same process begins to wait before the Locker repeats the
// release. The repeated release removes the Locker from the queues, and notifies no waiter of this process.
func TestARepeatedReleaseTakesNoPositionFromTheNextOfItsProcess(t *testing.T) {
	for name, contended := range map[string]bool{"alone": false, "with a rival": true} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := redlocktest.New(t, redlocktest.Count(3))
			var cut atomic.Bool
			all := WrapEach(masters, func(_ int, m *redlocktest.Master) redlock.Master { return unreleased{m, &cut} })
			l := LockerOver(t, all, redlock.Options{Clock: masters.Clock()})
			other := masters.Locker(t, redlock.Options{})
			masters.Hold(Key)
			holder := Wait(t, t.Context(), l, Key, LongTTL)
			Settle(time.Second)
			masters.Release(Key)
			lock := holder.Get(t)
			Pass(time.Millisecond) // the third master has granted it, too

			cut.Store(true)
			Is(t, lock.Release(t.Context()), redlock.ErrNoQuorum)
			began := time.Now()
			var rival *Waiting
			if contended {
				rival = Wait(t, t.Context(), other, Key, LongTTL, redlock.RetryEvery(time.Hour))
				Pass(time.Millisecond) // it is the older waiter
			}
			next := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(time.Hour))
			Pass(50 * time.Millisecond)
			cut.Store(false) // the next time they are asked they get it
			Settle(time.Second)
			if contended {
				theirs := rival.Get(t)
				Settle(time.Second)
				began = time.Now()
				Must(t, theirs.Release(t.Context()))
				comesAtOnce(t, next, began)
				return
			}
			Settle(30 * time.Second)
			Must(t, next.Get(t).Release(t.Context()))
			if took := next.At.Sub(began); took > time.Second {
				t.Errorf("the waiter came %v after the release", took)
			}
		})
	}
}

// notifying is a queueing master. Replies to releases say at random that another process was notified.
type notifying struct {
	*queueing
	chance func() bool
}

func (m notifying) Do(ctx context.Context, batch []*single.Call) {
	m.queueing.Do(ctx, batch)
	for _, c := range batch {
		if c.Request.Op == single.Release && c.Err == nil && c.Reply.Outcome == single.Granted && m.chance() {
			c.Reply.Called = true
		}
	}
}

// TestEveryWaitingProcessIsInTheMastersQueues is the property. Goroutines of a Locker take the key, wait for it, are
// cancelled and come again. Each request takes a different time. If a goroutine waits at the end, its process is in
// the queues of a quorum, however seldom the goroutine asks.
func TestEveryWaitingProcessIsInTheMastersQueues(t *testing.T) {
	for seed := range uint64(soak.Or(100, 3000)) {
		Bubble(t, 3, func(t *testing.T, masters Fakes) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			some := func(most time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(random.Int64N(int64(most)))
			}
			all, over := queues(masters, true)
			for i, m := range masters {
				over[i] = notifying{all[i], func() bool { return some(2) == 0 }}
				m.Behave(func(*single.Request) Act {
					return Act{
						Before: time.Millisecond + some(10*time.Millisecond), After: time.Millisecond +
							some(3*time.Millisecond),
					}
				})
			}
			l, err := redlock.New(over, redlock.Options{Clock: NewClock(), RequestTimeout: time.Second})
			Must(t, err)
			var others sync.WaitGroup
			for range 3 {
				others.Go(func() {
					for range 4 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond+some(40*time.Millisecond))
						if lock, err := l.Acquire(ctx, Key, LongTTL, redlock.RetryEvery(time.Hour)); err == nil {
							Pass(some(5 * time.Millisecond))
							_ = lock.Release(t.Context())
						}
						cancel()
						Pass(some(3 * time.Millisecond))
					}
				})
			}
			Pass(some(50 * time.Millisecond))
			taken := takes(t, masters)
			Pass(some(10 * time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			w := Wait(t, ctx, l, Key, LongTTL, redlock.RetryEvery(time.Hour))
			others.Wait()
			Settle(5 * time.Second)
			if stands := standsIn(all); stands < 2 {
				t.Errorf("seed %d: a goroutine waits, and the Locker is in the queues of %d masters", seed, stands)
			}
			cancel()
			_ = w.Fail(t)
			Must(t, taken.Release(t.Context()))
			Must(t, l.Close(t.Context()))
		})
	}
}

// takes is another process that takes the key as soon as it is free.
func takes(t *testing.T, masters Fakes) *redlock.Lock {
	t.Helper()
	other := masters.Locker(t, redlock.Options{})
	for {
		if lock, err := other.TryAcquire(t.Context(), Key, 24*time.Hour); err == nil {
			return lock
		}
		Pass(3 * time.Millisecond)
	}
}
