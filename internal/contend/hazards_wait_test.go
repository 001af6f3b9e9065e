package contend_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// gets acquires within d, or fails.
func gets(t *testing.T, l *redlock.Locker, k string, d time.Duration, opts ...redlock.Option) *redlock.Lock {
	t.Helper()
	lock, err := l.Acquire(Within(t, d), k, LongTTL, opts...)
	if err != nil {
		t.Fatalf("%q, which is free, was not acquired within %v: %v", k, d, err)
	}
	return lock
}

func TestHazard45AWaiterForSeveralKeysDoesNotHoldUpOneThatIsFree(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Behave(Away(time.Millisecond))
		l := masters.Locker(t, redlock.Options{})
		held := gets(t, l, "b", time.Second, redlock.AutoRenew())
		ctx, cancel := context.WithCancel(t.Context())
		both := Wait(t, ctx, l, "a", LongTTL, redlock.AndKeys("b"))
		Settle(soak.Or(2*time.Minute, time.Hour))
		for range 100 { // a is free, and stays usable
			Must(t, gets(t, l, "a", livenessBound).Release(t.Context()))
		}
		cancel()
		Is(t, both.Fail(t), context.Canceled)
		Must(t, held.Release(t.Context()))
	})
}

func TestHazard45AHolderThatWaitsForASecondLockDoesNotBlockItsFirstKey(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		b := gets(t, l, "b", time.Second, redlock.AutoRenew())
		ctx, cancel := context.WithCancel(t.Context())
		both := Wait(t, ctx, l, "a", LongTTL, redlock.AndKeys("b"))
		Settle(time.Second)
		a := gets(t, l, "a", livenessBound) // b's holder wants a: it would wait for itself
		Must(t, a.Release(t.Context()))
		Must(t, b.Release(t.Context()))
		Must(t, both.Get(t).Release(t.Context()))
		cancel()
	})
}

// The keys change hands in so little time that they are never free together by chance.
func TestHazard45AWaiterForSeveralKeysIsNotStarvedByThoseForOne(t *testing.T) {
	for _, holds := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		Bubble(t, 3, func(t *testing.T, masters Fakes) {
			masters.Behave(Away(2 * time.Microsecond))
			l := masters.Locker(t, redlock.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var streams sync.WaitGroup
			var cycles atomic.Int64
			for i, k := range []string{"a", "a", "a", "b", "b", "b"} {
				streams.Go(func() {
					Pass(time.Duration(i) * holds / 7)
					for ctx.Err() == nil {
						lock, err := l.Acquire(ctx, k, LongTTL)
						if err != nil {
							return
						}
						Pass(holds)
						_ = lock.Release(ctx)
						cycles.Add(1)
					}
				})
			}
			Settle(time.Second)
			for range 5 {
				began := time.Now()
				lock := gets(t, l, "a", 5*time.Second, redlock.AndKeys("b"))
				t.Logf("holds of %v: both keys after %v", holds, time.Since(began))
				Must(t, lock.Release(t.Context()))
			}
			before := cycles.Load()
			Settle(time.Second)
			if n := cycles.Load() - before; n == 0 {
				t.Error("the streams stand still: nothing could have starved it")
			}
			cancel()
			streams.Wait()
		})
	}
}

func TestHazard45AWaiterWhoseTimeoutIsTooShortDoesNotHoldUpOthers(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Behave(Away(30 * time.Millisecond))
		l := masters.Locker(t, redlock.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var hopeless []*Waiting
		for range 3 { // 10 ms for a request
			hopeless = append(hopeless, Wait(t, ctx, l, Key, 200*time.Millisecond))
		}
		Settle(time.Second)
		gets(t, l, Key, 2*livenessBound).Release(t.Context())
		cancel()
		for _, w := range hopeless {
			Is(t, w.Fail(t), context.Canceled)
		}
	})
}

func TestHazard45AWaiterWithALongRetryEveryDoesNotDelayOthers(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Take("dead", 9*time.Second)
		l := masters.Locker(t, redlock.Options{})
		seldom := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(time.Hour), redlock.MaxAttempts(3))
		Settle(time.Second)
		began := time.Now()
		second := Wait(t, t.Context(), l, Key, LongTTL)
		first := seldom.Get(t) // the order stays: it is asked for as often as the second would
		if late := time.Since(began) - 8*time.Second; late > livenessBound {
			t.Errorf("the waiter came %v after the key had expired", late)
		}
		Must(t, first.Release(t.Context()))
		Must(t, second.Get(t).Release(t.Context()))
	})
}

// If a waiter can't use a notification, the notification goes to the next waiter. Otherwise a free key would stay
// unclaimed until a waiter's pause ends.
func TestHazard45ANotificationThatCanNotBeUsedIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		over := WrapEach(masters, func(_ int, m *redlocktest.Master) redlock.Master { return &moody{Master: m} })
		holder := masters.Locker(t, redlock.Options{})
		opts := redlock.Options{Clock: NewClock()}
		first, second := LockerOver(t, over, opts), LockerOver(t, over, opts)
		a := gets(t, holder, "a", time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		both := Wait(t, ctx, first, "a", LongTTL, redlock.AndKeys("b"), redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		b := gets(t, holder, "b", time.Second) // from now on it is b that is in its way
		one := Wait(t, t.Context(), second, "a", LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		began := time.Now()
		Must(t, a.Release(t.Context())) // the masters notify the first, which has waited longer
		lock := one.Get(t)
		if took := time.Since(began); took > livenessBound {
			t.Errorf("the key was free, and the second Locker came %v later", took)
		}
		synctest.Wait()
		// not by those on which the first had given up before the release came, or the second had the key already
		if !slices.ContainsFunc(over, func(m redlock.Master) bool { return m.(*moody).notified.Load() == 2 }) {
			t.Error("no master has notified twice: this is about the second notification")
		}
		Must(t, lock.Release(t.Context()))
		cancel()
		Is(t, both.Fail(t), context.Canceled)
		Must(t, b.Release(t.Context()))
	})
}

func TestHazard46MaxAttemptsBoundsTheWaitInAQueue(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		held := Acquire(t, l, LongTTL, redlock.AutoRenew())
		ctx, cancel := context.WithCancel(t.Context())
		first := Wait(t, ctx, l, Key, LongTTL)
		Settle(time.Second)
		for _, test := range []struct {
			opts        []redlock.Option
			least, most time.Duration
		}{
			{[]redlock.Option{redlock.MaxAttempts(1)}, 0, 0},
			{[]redlock.Option{redlock.MaxAttempts(3)}, 3 * time.Millisecond, 2 * 64 * time.Millisecond},
			{
				[]redlock.Option{redlock.MaxAttempts(3), redlock.RetryEvery(time.Second)},
				2 * time.Second,
				2 * time.Second,
			},
		} {
			began := time.Now()
			_, err := l.Acquire(Within(t, time.Minute), Key, LongTTL, test.opts...)
			took := time.Since(began)
			Is(t, err, redlock.ErrHeld)
			IsNot(t, err, context.DeadlineExceeded)
			q, ok := errors.AsType[*redlock.QuorumError](err)
			if !ok || q.N != 3 {
				t.Errorf("%v: the last attempt has to ask the masters", err)
			}
			if took > test.most || took < test.least {
				t.Errorf("the wait took %v, want %v to %v", took, test.least, test.most)
			}
		}
		cancel()
		Is(t, first.Fail(t), context.Canceled)
		Must(t, held.Release(t.Context()))
	})
}

func TestHazard46AQueuedAttemptThatReachesTheFrontSucceeds(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
		held := Acquire(t, l, LongTTL)
		first := Wait(t, t.Context(), l, Key, LongTTL)
		Settle(time.Second)
		second := Wait(t, t.Context(), l, Key, LongTTL, redlock.MaxAttempts(5), redlock.RetryEvery(time.Second))
		Settle(1500 * time.Millisecond)
		Must(t, held.Release(t.Context()))
		Must(t, first.Get(t).Release(t.Context()))
		Must(t, second.Get(t).Release(t.Context()))
	})
}

// When a writer's context ends, the Locker removes its claim, even if other waiters of the Locker remain: some may be
// readers.
func TestHazard49AWriterThatGivesUpLeavesNoClaimToItsOwnReaders(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, Key, LongTTL, redlock.Shared())
	ctx, cancel := context.WithCancel(t.Context())
	writer := Wait(t, ctx, b, Key, LongTTL, redlock.Exclusive())
	AwaitQueue(t, servers, Key, 1)
	reader := Wait(t, t.Context(), b, Key, LongTTL, redlock.Shared())
	claims := func() (n int) {
		for _, s := range servers { // the mark of our sorted sets has the least score of all
			count, err := s.Client().ZCount(t.Context(), Key, "(-9007199254740991", "(0").Result()
			if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
				continue // there is one hold alone, which is a string
			}
			Must(t, err)
			n += int(count)
		}
		return n
	}
	if claims() < 2 {
		t.Fatal("the writer has left no claim")
	}
	cancel()
	Is(t, writer.Fail(t), context.Canceled)
	redistest.Eventually(t, 500*time.Millisecond, func() bool { return claims() == 0 },
		"the claim, which would last a second, to be gone")
	Give(t, reader.Get(t))
	Give(t, held)
}

func TestHazard51MaxOutageBoundsForHowLongAnOutageIsWaitedOut(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters.Take("somebody", 10*time.Second)
		gone := On(single.Acquire, Act{Err: ErrSilent})
		began := time.Now()
		first := Wait(t, t.Context(), l, Key, LongTTL, redlock.MaxOutage(3*time.Second))
		synctest.Wait()
		second := Wait(t, t.Context(), l, Key, LongTTL, redlock.MaxOutage(5*time.Second)) // in line behind it
		// it is held: that is no outage
		Settle(8 * time.Second)
		masters.Behave(gone)
		Settle(2 * time.Second)
		masters.Behave(nil) // two seconds are shorter than three
		Settle(time.Second)
		masters.Behave(gone)
		_ = first.Get(t) // and is not released
		err := second.Fail(t)
		Is(t, err, redlock.ErrNoQuorum)
		IsNot(t, err, redlock.ErrHeld)
		if took := time.Since(began); took < 15*time.Second || took > 17*time.Second {
			t.Errorf("the second wait ended after %v, want five seconds after the eleventh", took)
		}
		masters.Behave(nil)
	})
}

// readyAfter is a master that takes this long to make a subscription; with 0 it is made at once, before Listen
// returns.
type readyAfter struct {
	*Fake
	after time.Duration
}

func (m readyAfter) Listen(_ string, ready func(), _ func(string)) (stop func()) {
	if m.after == 0 {
		ready()
		return func() {}
	}
	timer := time.AfterFunc(m.after, ready)
	return func() { timer.Stop() }
}

func TestHazard56AListenerMayCallReadyAtOnce(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Take("somebody", time.Second)
		over := WrapEach(masters, func(_ int, m *Fake) redlock.Master { return readyAfter{m, 0} })
		l := LockerOver(t, over, redlock.Options{Clock: NewClock()})
		Must(t, gets(t, l, Key, 2*time.Second).Release(t.Context()))
	})
}

func TestHazard65CloseLeavesTheQueuesWithinItsContext(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Take("somebody", time.Hour)
		l, err := redlock.New(masters.Masters(), redlock.Options{Clock: NewClock()})
		Must(t, err)
		w := Wait(t, t.Context(), l, Key, LongTTL)
		Settle(time.Second)
		masters.Behave(On(single.Leave, Act{Lost: true}))
		ctx := Within(t, 100*time.Millisecond)
		began := time.Now()
		_ = l.Close(ctx)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		Is(t, w.Fail(t), redlock.ErrClosed)
		Settle(2 * time.Second) // what is under way ends by its own timeout
	})
}

func TestHazard66TheSubscriptionBecomingReadyUsesNoAttempt(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Take("somebody", time.Hour)
		over := WrapEach(masters, func(_ int, m *Fake) redlock.Master { return readyAfter{m, 3 * time.Millisecond} })
		l := LockerOver(t, over, redlock.Options{Clock: NewClock()})
		began := time.Now()
		_, err := l.Acquire(t.Context(), Key, LongTTL, redlock.MaxAttempts(2), redlock.RetryEvery(time.Second))
		Is(t, err, redlock.ErrHeld)
		if took := time.Since(began); took != time.Second {
			t.Errorf("two attempts, a second apart, took %v", took)
		}
		if n := rounds(masters); n != 3 {
			t.Errorf("%d rounds, want two and the round that checks for a missed release", n)
		}
	})
}
