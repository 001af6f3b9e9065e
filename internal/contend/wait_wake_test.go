package contend_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// These masters send no notifications. A release wakes the first waiter of its own process, however seldom that
// waiter would ask.
func TestAReleaseWakesWaitersOfItsProcess(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		holder := acquire(t, l, passTTL) // nobody waited then, so it is not passed on
		q := &line{t: t, l: l}
		q.add(passTTL, redlock.RetryEvery(time.Minute))
		began := time.Now()
		must(t, holder.Release(t.Context()))
		next := q.next(0)
		if took := time.Since(began); took > time.Millisecond || next.Owner() == holder.Owner() {
			t.Errorf("the next in line has the lock %v after its release (passed on: %t)", took,
				next.Owner() == holder.Owner())
		}
	})
}

// evenSplit makes two Lockers acquire the key at one instant. Each Locker is nearer to two of four masters than the
// other Locker. evenSplit reports whether each had the lock within a second.
func evenSplit(t *testing.T, opts ...redlock.Option) (both bool) {
	t.Helper()
	bubble(t, 4, func(t *testing.T, masters fakes) {
		for i, m := range masters {
			m.Behave(func(r *single.Request) act {
				if near := strings.HasPrefix(r.Owner, "left") == (i < 2); near {
					return away(time.Millisecond)(r)
				}
				return away(3 * time.Millisecond)(r)
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		had := make(chan bool, 2)
		start := make(chan struct{})
		var all sync.WaitGroup
		for _, side := range []string{"left", "right"} {
			l := masters.Locker(t, redlock.Options{Identity: side})
			all.Go(func() {
				<-start
				lock, err := l.Acquire(ctx, key, longTTL, opts...)
				if had <- err == nil; err == nil {
					_ = lock.Release(ctx)
				}
			})
		}
		close(start)
		all.Wait()
		first, second := <-had, <-had
		both = first && second
	})
	return both
}

// Hazard 31, of two that share the votes out evenly: nothing but chance sets them apart.
func TestHazard31AnEvenSplitIsResolvedByChance(t *testing.T) {
	for range 20 {
		if !evenSplit(t) {
			t.Fatal("two Lockers split the vote for a second")
		}
	}
	// The control: Lockers that come back in step split the vote again.
	if evenSplit(t, redlock.RetryEvery(10*time.Millisecond)) {
		t.Error("at a fixed interval both had the lock: this test would not notice a livelock")
	}
}

// A refusal says when the key will have expired, and a waiter comes just then, whatever its backoff would be.
func TestAWaiterComesAtTheMomentWhenTheKeyExpires(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{Jitter: func(d time.Duration) time.Duration { return d - 1 }})
		for _, ttl := range []time.Duration{
			17 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 470 * time.Millisecond,
		} {
			for _, m := range masters {
				m.Take("dead", ttl)
			}
			began := time.Now()
			lock := acquire(t, l, longTTL)
			if late := time.Since(began) - ttl; late < 0 || late > 4*time.Millisecond {
				t.Errorf("the key was free after %v, and the lock came %v later", ttl, late)
			}
			must(t, lock.Release(t.Context()))
			settle(time.Second)
		}
	})
}

func TestWaitersOfOneLockerComeInTheOrderOfTheirArrival(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		holder := acquire(t, l, time.Hour)
		const n = 10
		order := make(chan int, n)
		giveUp := make([]context.CancelFunc, n)
		for i := range n {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			giveUp[i] = cancel
			go func() {
				lock, err := l.Acquire(ctx, key, time.Hour)
				if err != nil {
					return
				}
				order <- i
				if err := lock.Release(context.Background()); err != nil {
					t.Errorf("waiter %d: Release: %v", i, err)
				}
			}()
			synctest.Wait() // it is in the queue
		}
		giveUp[0]() // the first, and one in the middle: the others move up
		giveUp[4]()
		synctest.Wait()
		must(t, holder.Release(t.Context()))
		settle(time.Minute)
		close(order)
		var got []int
		for i := range order {
			got = append(got, i)
		}
		if want := []int{1, 2, 3, 5, 6, 7, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("the waiters came in the order %v, want %v", got, want)
		}
	})
}

func TestOnlyTheFirstOfManyWaitersAsksTheMasters(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		for _, m := range masters {
			m.Take("other", time.Hour)
		}
		ctx, cancel := context.WithCancel(t.Context())
		asked := func(waiters int) int {
			for range waiters {
				go func() { _, _ = l.Acquire(ctx, key, time.Hour) }()
			}
			settle(10 * time.Second)
			before := masters[0].Count(single.Acquire)
			settle(10 * time.Second)
			return masters[0].Count(single.Acquire) - before
		}
		one, hundred := asked(1), asked(99)
		cancel()
		settle(time.Second)
		if one == 0 || hundred > one+one/2 {
			t.Errorf("in ten seconds one waiter asks %d times and a hundred ask %d times", one, hundred)
		}
	})
}

func TestAWaiterGetsTheLockWhenItHasExpired(t *testing.T) {
	bubble(t, 5, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		for i, m := range masters {
			m.Take("other", time.Duration(i+10)*100*time.Millisecond)
		}
		began := time.Now()
		must(t, acquire(t, l, longTTL).Release(t.Context()))
		if took := time.Since(began); took < 1200*time.Millisecond || took > 1400*time.Millisecond {
			t.Errorf("acquired after %v; a quorum was free after 1.2s", took)
		}
	})
}
