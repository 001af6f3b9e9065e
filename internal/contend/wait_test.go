package contend_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/single"
)

// rounds counts the rounds of acquisition. When a quorum has decided the last one, the other masters may not have seen
// it yet.
func rounds(masters fakes) (n int) {
	for _, m := range masters {
		n = max(n, m.Count(single.Acquire))
	}
	return n
}

// SOURCES S1: an interval and a maximum number of attempts.
func TestMaxAttemptsEndsTheWaitAfterSoManyRounds(t *testing.T) {
	for _, test := range []struct {
		name     string
		opts     []redlock.Option
		rounds   int
		min, max time.Duration
	}{
		{"one", []redlock.Option{redlock.MaxAttempts(1)}, 1, 0, 0},
		{
			"three at a fixed interval",
			[]redlock.Option{redlock.MaxAttempts(3), redlock.RetryEvery(100 * time.Millisecond)},
			3, 200 * time.Millisecond, 200 * time.Millisecond,
		},
		{
			"options in the other order",
			[]redlock.Option{redlock.RetryEvery(time.Second), redlock.MaxAttempts(5)},
			5, 4 * time.Second, 4 * time.Second,
		},
		{
			"twenty with backoff",
			[]redlock.Option{redlock.MaxAttempts(20)},
			20, 400 * time.Millisecond,
			19 * 64 * time.Millisecond,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, masters fakes) {
				for _, m := range masters {
					m.Take("somebody", time.Hour)
				}
				l := masters.Locker(t, redlock.Options{})
				began := time.Now()
				_, err := l.Acquire(t.Context(), key, longTTL, test.opts...)
				took := time.Since(began)
				is(t, err, redlock.ErrHeld)
				isNot(t, err, redlock.ErrNoQuorum, context.DeadlineExceeded, context.Canceled)
				if took < test.min || took > test.max {
					t.Errorf("the wait took %v, want %v to %v", took, test.min, test.max)
				}
				settle(time.Second)
				if got := rounds(masters); got != test.rounds {
					t.Errorf("%d rounds, want %d", got, test.rounds)
				}
			})
		})
	}
}

func TestTheLastOfTheAttemptsCanSucceed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		for _, m := range masters {
			m.Take("somebody", 250*time.Millisecond)
		}
		l := masters.Locker(t, redlock.Options{})
		lock, err := l.Acquire(t.Context(), key, longTTL, redlock.MaxAttempts(4),
			redlock.RetryEvery(100*time.Millisecond))
		must(t, err)
		if got := rounds(masters); got != 4 {
			t.Errorf("%d rounds, want 4", got)
		}
		must(t, lock.Release(t.Context()))
	})
}

func TestAttemptsWithoutAQuorumCountAndSayWhy(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		masters[0].Behave(on(single.Acquire, act{Err: errSilent}))
		masters[1].Behave(on(single.Acquire, act{Err: errSilent}))
		l := masters.Locker(t, redlock.Options{})
		_, err := l.Acquire(t.Context(), key, longTTL, redlock.MaxAttempts(3), redlock.RetryEvery(10*time.Millisecond))
		is(t, err, redlock.ErrNoQuorum)
		isNot(t, err, redlock.ErrHeld)
		settle(10 * time.Second)
		if got := masters[2].Count(single.Acquire); got != 3 {
			t.Errorf("%d rounds, want 3", got)
		}
	})
}

func TestAWaitThatItsContextEndsNamesTheCauseAndTheKey(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		for _, m := range masters {
			m.Take("somebody", time.Hour)
		}
		l := masters.Locker(t, redlock.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := l.Acquire(ctx, key, longTTL)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the wait took %v, want the three seconds of its context", took)
		}
		is(t, err, redlock.ErrHeld)
		is(t, err, context.DeadlineExceeded)
		var q *redlock.QuorumError
		if !errors.As(err, &q) || q.Granted != 0 || q.Quorum != 2 || q.N != 3 {
			t.Errorf("%v does not carry the last round", err)
		}
		if err := l.Do(ctx, key, longTTL, func(context.Context) error {
			return nil
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do: %v", err)
		}
	})
}

// A refusal carries the remaining ttl: the waiter comes when the key is free, not when its backoff happens to end.
func TestAWaiterComesWhenTheKeyHasExpired(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		for _, ttl := range []time.Duration{17 * time.Millisecond, 20 * time.Millisecond, 500 * time.Millisecond} {
			for _, m := range masters {
				m.Take("dead", ttl)
			}
			began := time.Now()
			lock := acquire(t, l, longTTL)
			late := time.Since(began) - ttl
			if late < 0 || late > 64*time.Millisecond {
				t.Errorf("the key was free after %v, and the lock came %v later", ttl, late)
			}
			must(t, lock.Release(t.Context()))
			settle(time.Second)
		}
	})
}

func TestWaitersOfOneLockerComeInTheirOrder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		masters.Behave(away(time.Millisecond))
		held := acquire(t, l, longTTL)
		const waiters = 10
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range waiters {
			all.Go(func() {
				lock, err := l.Acquire(t.Context(), key, longTTL)
				if err != nil {
					t.Errorf("waiter %d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("waiter %d: %v", i, err)
				}
			})
			settle(time.Millisecond)
		}
		before := rounds(masters)
		settle(10 * time.Second)
		alone := rounds(masters) - before
		if alone > 10*1000/32 { // the mean of the longest backoff is 48 ms
			t.Errorf("%d waiters sent %d rounds in 10s: more than the first of them contends", waiters, alone)
		}
		must(t, held.Release(t.Context()))
		all.Wait()
		if !slices.IsSorted(order) || len(order) != waiters {
			t.Errorf("the waiters came in the order %v", order)
		}
	})
}

func TestACancelledWaiterLeavesTheQueue(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.Locker(t, redlock.Options{})
		held := acquire(t, l, longTTL)
		ctx, cancel := context.WithCancel(t.Context())
		first := wait(t, ctx, l, key, longTTL)
		settle(time.Second)
		second := wait(t, ctx, l, key, longTTL)
		third := wait(t, t.Context(), l, key, longTTL)
		settle(time.Second)
		cancel()
		is(t, first.Fail(t), context.Canceled)
		is(t, second.Fail(t), context.Canceled)
		settle(time.Second)
		must(t, held.Release(t.Context()))
		must(t, third.Get(t).Release(t.Context()))
	})
}

func TestAClosingLockerEndsItsWaits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		for _, m := range masters {
			m.Take("somebody", time.Hour)
		}
		l := masters.Locker(t, redlock.Options{})
		first, second := wait(t, t.Context(), l, key, longTTL), wait(t, t.Context(), l, key, longTTL)
		settle(time.Second)
		must(t, l.Close(t.Context()))
		is(t, first.Fail(t), redlock.ErrClosed)
		is(t, second.Fail(t), redlock.ErrClosed)
		if n := masters.Holders("somebody"); n != 3 {
			t.Errorf("%d masters have the key, want all", n)
		}
	})
}

// compete makes n Lockers acquire at one instant. It returns the number of rounds that all Lockers together needed
// until each had had the lock once, or a second was over.
func compete(t *testing.T, masters fakes, n int, distance func() time.Duration, opts ...redlock.Option) (rounds int) {
	masters.Behave(func(*single.Request) act {
		d := distance()
		return act{Before: d, After: d}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		l := masters.Locker(t, redlock.Options{})
		all.Go(func() {
			<-start
			if lock, err := l.Acquire(ctx, key, longTTL, opts...); err == nil {
				_ = lock.Release(ctx)
			}
		})
	}
	close(start)
	all.Wait()
	return masters[0].Count(single.Acquire)
}

// Hazard 31: waiters that split the vote come back at different times, so that one waiter soon wins.
func TestHazard31SplitVotesDoNotLivelock(t *testing.T) {
	const contenders = 8
	trials := soak.Or(12, 30)
	worst := func(distance func() time.Duration, opts ...redlock.Option) (rounds int) {
		for range trials {
			bubble(t, 5, func(t *testing.T, masters fakes) {
				rounds = max(rounds, compete(t, masters, contenders, distance, opts...))
			})
		}
		return rounds
	}
	sameDistance := func() time.Duration { return time.Millisecond }
	differs := func() time.Duration { return time.Duration(100+rand.IntN(900)) * time.Microsecond }
	const enough = 3 * contenders * contenders / 2
	for name, distance := range map[string]func() time.Duration{"equal": sameDistance, "different": differs} {
		if got := worst(distance); got > enough {
			t.Errorf("masters at %s distances: %d rounds until each of %d had the lock once", name, got, contenders)
		} else {
			t.Logf("masters at %s distances: at most %d rounds for %d locks", name, got, contenders)
		}
	}
	// The control: waiters that split the vote and come back in step split it again.
	if got := worst(sameDistance, redlock.RetryEvery(10*time.Millisecond)); got <= enough {
		t.Errorf("at a fixed interval the waiters needed %d rounds: this test would not notice a livelock", got)
	} else {
		t.Logf("at a fixed interval: %d rounds", got)
	}
}
