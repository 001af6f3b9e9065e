package redlock_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

func TestWaitersOfOneLockerComeInTheOrderOfTheirArrival(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.locker(t, redlock.Options{})
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
		l := masters.locker(t, redlock.Options{})
		for _, m := range masters {
			m.take("other", time.Hour)
		}
		ctx, cancel := context.WithCancel(t.Context())
		asked := func(waiters int) int {
			for range waiters {
				go func() { _, _ = l.Acquire(ctx, key, time.Hour) }()
			}
			settle(10 * time.Second)
			before := masters[0].count(single.Acquire)
			settle(10 * time.Second)
			return masters[0].count(single.Acquire) - before
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
		l := masters.locker(t, redlock.Options{})
		for i, m := range masters {
			m.take("other", time.Duration(i+10)*100*time.Millisecond)
		}
		began := time.Now()
		must(t, acquire(t, l, longTTL).Release(t.Context()))
		if took := time.Since(began); took < 1200*time.Millisecond || took > 1400*time.Millisecond {
			t.Errorf("acquired after %v; a quorum was free after 1.2s", took)
		}
	})
}
