package contend_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// rounds counts the rounds of acquisition. When a quorum has decided the last one, the other masters may not have seen
// it yet.
func rounds(masters Fakes) (n int) {
	for _, m := range masters {
		n = max(n, m.Count(single.Acquire))
	}
	return n
}

// SOURCES S1: an interval and a maximum number of attempts.
func TestMaxAttemptsEndsTheWaitAfterSoManyRounds(t *testing.T) {
	heldFor := func(d time.Duration) func(Fakes) {
		return func(masters Fakes) {
			masters.Take("somebody", d)
		}
	}
	silent := func(masters Fakes) { masters[1:].Behave(On(single.Acquire, Act{Err: ErrSilent})) }
	const tenth = 100 * time.Millisecond
	for _, test := range []struct {
		name     string
		masters  func(Fakes)
		opts     []redlock.Option
		want     error
		rounds   int
		min, max time.Duration
	}{
		{"one", heldFor(time.Hour), []redlock.Option{redlock.MaxAttempts(1)}, redlock.ErrHeld, 1, 0, 0},
		{
			"three at a fixed interval", heldFor(time.Hour),
			[]redlock.Option{redlock.MaxAttempts(3), redlock.RetryEvery(tenth)},
			redlock.ErrHeld, 3, 2 * tenth, 2 * tenth,
		},
		{
			"options in the other order", heldFor(time.Hour),
			[]redlock.Option{redlock.RetryEvery(time.Second), redlock.MaxAttempts(5)},
			redlock.ErrHeld, 5, 4 * time.Second, 4 * time.Second,
		},
		{
			"twenty with backoff", heldFor(time.Hour),
			[]redlock.Option{redlock.MaxAttempts(20)},
			redlock.ErrHeld, 20, 400 * time.Millisecond, 19 * 64 * time.Millisecond,
		},
		{
			"the last succeeds", heldFor(tenth * 5 / 2),
			[]redlock.Option{redlock.MaxAttempts(4), redlock.RetryEvery(tenth)},
			nil, 4, 3 * tenth, 3 * tenth,
		},
		{
			"without a quorum", silent,
			[]redlock.Option{redlock.MaxAttempts(3), redlock.RetryEvery(tenth)},
			redlock.ErrNoQuorum, 3, 2 * tenth, 2*tenth + time.Second,
		},
	} {
		RunVirtual(t, test.name, func(t *testing.T) {
			masters := NewFakes(3)
			test.masters(masters)
			l := masters.Locker(t, redlock.Options{})
			began := time.Now()
			lock, err := l.Acquire(t.Context(), Key, LongTTL, test.opts...)
			took := time.Since(began)
			if test.want == nil {
				Must(t, err)
				Must(t, lock.Release(t.Context()))
			} else {
				OnlyIs(t, err, test.want)
			}
			if took < test.min || took > test.max {
				t.Errorf("the wait took %v, want %v to %v", took, test.min, test.max)
			}
			Settle(10 * time.Second)
			if got := rounds(masters); got != test.rounds {
				t.Errorf("%d rounds, want %d", got, test.rounds)
			}
		})
	}
}

// Two waiters end with one context, and the second is woken by the first.
func TestACancelledWaiterLeavesTheQueue(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		held := Acquire(t, l, LongTTL)
		ctx, cancel := context.WithCancel(t.Context())
		first := Wait(t, ctx, l, Key, LongTTL)
		Settle(time.Second)
		second := Wait(t, ctx, l, Key, LongTTL)
		third := Wait(t, t.Context(), l, Key, LongTTL)
		Settle(time.Second)
		cancel()
		Is(t, first.Fail(t), context.Canceled)
		Is(t, second.Fail(t), context.Canceled)
		Settle(time.Second)
		Must(t, held.Release(t.Context()))
		Must(t, third.Get(t).Release(t.Context()))
	})
}

// compete makes n Lockers acquire at one instant. It returns the number of rounds that all Lockers together needed
// until each had had the lock once, or a second was over.
func compete(t *testing.T, masters Fakes, n int, distance func() time.Duration, opts ...redlock.Option) (rounds int) {
	masters.Behave(func(*single.Request) Act {
		d := distance()
		return Act{Before: d, After: d}
	})
	ctx := Within(t, time.Second)
	start := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		l := masters.Locker(t, redlock.Options{})
		all.Go(func() {
			<-start
			if lock, err := l.Acquire(ctx, Key, LongTTL, opts...); err == nil {
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
			Bubble(t, 5, func(t *testing.T, masters Fakes) {
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

// These masters send no notifications. A release wakes the first waiter of its own process, however seldom that
// waiter would ask.
func TestAReleaseWakesWaitersOfItsProcess(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		holder := Acquire(t, l, passTTL) // nobody waited then, so it is not passed on
		q := &line{t: t, l: l}
		q.add(passTTL, redlock.RetryEvery(time.Minute))
		began := time.Now()
		Must(t, holder.Release(t.Context()))
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
	Bubble(t, 4, func(t *testing.T, masters Fakes) {
		for i, m := range masters {
			m.Behave(func(r *single.Request) Act {
				if near := strings.HasPrefix(r.Owner, "left") == (i < 2); near {
					return Away(time.Millisecond)(r)
				}
				return Away(3 * time.Millisecond)(r)
			})
		}
		ctx := Within(t, time.Second)
		had := make(chan bool, 2)
		start := make(chan struct{})
		var all sync.WaitGroup
		for _, side := range []string{"left", "right"} {
			l := masters.Locker(t, redlock.Options{Identity: side})
			all.Go(func() {
				<-start
				lock, err := l.Acquire(ctx, Key, LongTTL, opts...)
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
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{Jitter: func(d time.Duration) time.Duration { return d - 1 }})
		for _, ttl := range []time.Duration{
			17 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 470 * time.Millisecond,
		} {
			masters.Take("dead", ttl)
			began := time.Now()
			lock := Acquire(t, l, LongTTL)
			if late := time.Since(began) - ttl; late < 0 || late > 4*time.Millisecond {
				t.Errorf("the key was free after %v, and the lock came %v later", ttl, late)
			}
			Must(t, lock.Release(t.Context()))
			Settle(time.Second)
		}
	})
}

func TestWaitersOfOneLockerComeInTheOrderOfTheirArrival(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		holder := Acquire(t, l, time.Hour)
		const n = 10
		order := make(chan int, n)
		giveUp := make([]context.CancelFunc, n)
		for i := range n {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			giveUp[i] = cancel
			go func() {
				lock, err := l.Acquire(ctx, Key, time.Hour)
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
		Must(t, holder.Release(t.Context()))
		Settle(time.Minute)
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
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters.Take("other", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		asked := func(waiters int) int {
			for range waiters {
				go func() { _, _ = l.Acquire(ctx, Key, time.Hour) }()
			}
			Settle(10 * time.Second)
			before := masters[0].Count(single.Acquire)
			Settle(10 * time.Second)
			return masters[0].Count(single.Acquire) - before
		}
		one, hundred := asked(1), asked(99)
		cancel()
		Settle(time.Second)
		if one == 0 || hundred > one+one/2 {
			t.Errorf("in ten seconds one waiter asks %d times and a hundred ask %d times", one, hundred)
		}
	})
}

func TestAWaiterGetsTheLockWhenItHasExpired(t *testing.T) {
	WithLocker(t, 5, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		for i, m := range masters {
			m.Take("other", time.Duration(i+10)*100*time.Millisecond)
		}
		began := time.Now()
		Must(t, Acquire(t, l, LongTTL).Release(t.Context()))
		if took := time.Since(began); took < 1200*time.Millisecond || took > 1400*time.Millisecond {
			t.Errorf("acquired after %v; a quorum was free after 1.2s", took)
		}
	})
}
