package contend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// atOnce is the longest time until a notified waiter has its key, where masters answer at once. It is shorter than
// the pause between two attempts of a waiter that asks seldom.
const atOnce = time.Second

// holdsFor takes the key for a while, as another process does.
func holdsFor(t *testing.T, masters redlocktest.Masters, d time.Duration) {
	t.Helper()
	Settle(d)
	masters.Release(Key)
}

// The masters keep a position for a minute, and this one is needed for longer.
func TestAWaiterWithALongRetryEveryIsNotifiedOfALateRelease(t *testing.T) {
	for _, c := range []struct{ every, held time.Duration }{
		{30 * time.Second, 59 * time.Second},
		{10 * time.Minute, 2 * time.Minute},
		{10 * time.Minute, 9 * time.Minute},
		{24 * time.Hour, 5 * time.Hour},
	} {
		InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
			masters.Hold(Key)
			w := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(c.every))
			holdsFor(t, masters, c.held)
			began := time.Now()
			Must(t, w.Get(t).Release(t.Context()))
			if took := w.At.Sub(began); took > atOnce {
				t.Errorf("RetryEvery(%v): the key was held for %v, and the waiter came %v after its release", c.every,
					c.held, took)
			}
		})
	}
}

// A waiter keeps its position if the masters do not answer one of its attempts.
func TestAWaiterKeepsItsPositionAfterALostAttempt(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		masters.Hold(Key)
		w := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(10*time.Minute))
		Settle(20 * time.Second)
		masters.Fail(errors.New("cut off"))
		Settle(27 * time.Second)
		masters.Fail(nil)
		holdsFor(t, masters, 23*time.Second)
		began := time.Now()
		Must(t, w.Get(t).Release(t.Context()))
		if took := w.At.Sub(began); took > atOnce {
			t.Errorf("the waiter came %v after the release", took)
		}
	})
}

// asks counts the attempts of a waiter that waits for an hour for a key that is held. The masters send notifications
// if notify is true.
func asks(t *testing.T, notify bool, opts ...redlock.Option) int {
	t.Helper()
	var count atomic.Int32
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, _ *redlock.Locker) {
		masters.Hold(Key)
		l := watched(t, masters, notify, func() { count.Add(1) })
		_, err := l.Acquire(Within(t, time.Hour+time.Second), Key, LongTTL, opts...)
		Is(t, err, redlock.ErrHeld)
		Settle(time.Second)
	})
	return int(count.Load())
}

// A waiter asks about ten times a second at most, also where the holder lacks a master: each attempt is granted that
// one, which is no split vote.
func TestHazard32AWaiterDoesNotSpin(t *testing.T) {
	for _, notify := range []bool{true, false} {
		for _, lost := range []int{0, 1} {
			InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
				held := Acquire(t, l, LongTTL)
				Settle(time.Second)
				masters[:lost].Lose(Key)
				var count atomic.Int32
				waits := watched(t, masters, notify, func() { count.Add(1) })
				_, err := waits.Acquire(Within(t, 2*time.Second), Key, LongTTL)
				Is(t, err, redlock.ErrHeld)
				if n := count.Load(); n < 2 || n > 50 {
					t.Errorf("%d attempts in 2s, notified: %t; %d masters have lost the key", n, notify, lost)
				}
				Must(t, held.Verify(t.Context()))
				Must(t, held.Release(t.Context()))
			})
		}
	}
}

// watched makes a Locker that calls attempted for each attempt. The masters notify it if notify is true.
func watched(t *testing.T, masters redlocktest.Masters, notify bool, attempted func()) *redlock.Locker {
	t.Helper()
	all := masters.All()
	for i, m := range all {
		if !notify {
			all[i] = struct{ redlock.Master }{m}
		}
	}
	return LockerOver(t, all, redlock.Options{Clock: masters.Clock(), Observer: func(e redlock.Event) {
		if e.Kind == redlock.EventAcquire {
			attempted()
		}
	}})
}

// A waiter needs few requests to keep its position, and sends them only where they help.
func TestAWaiterSendsFewRequestsToKeepItsPosition(t *testing.T) {
	every := redlock.RetryEvery(20 * time.Minute)
	if n := asks(t, true, every); n < 120 || n > 155 {
		t.Errorf("%d attempts within an hour, want one in 24 to 27 s", n)
	}
	if n := asks(t, false, every); n != 4 {
		t.Errorf("%d attempts within an hour at masters that do not notify, want 4: at once and every 20 minutes", n)
	}
	if n := asks(t, true, redlock.RetryEvery(20*time.Second)); n < 180 || n > 182 {
		t.Errorf("%d attempts within an hour, want one every 20 s", n)
	}
}

func TestKeepingAPositionCountsAsNoAttempt(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		masters.Hold(Key)
		began := time.Now()
		_, err := l.Acquire(t.Context(), Key, LongTTL, redlock.RetryEvery(10*time.Minute), redlock.MaxAttempts(3))
		Is(t, err, redlock.ErrHeld)
		if took := time.Since(began); took != 20*time.Minute {
			t.Errorf("three attempts, one every ten minutes, took %v", took)
		}
	})
}

// A waiter that stands still is notified once and does not react. The waiter behind it finds the free key by itself,
// long before its RetryEvery.
func TestAStoppedWaiterDelaysAWaiterWithALongRetryEveryByLessThanAMinute(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, _ *redlock.Locker) {
		// so it asks every 24 s
		l := masters.Locker(t, redlock.Options{Jitter: func(time.Duration) time.Duration { return 0 }})
		masters.Hold(Key)
		queueUp(t, masters, "still")
		for _, m := range masters {
			t.Cleanup(m.Listen(single.ChannelPrefix+"still", func() {}, func(string) {}))
		}
		w := Wait(t, t.Context(), l, Key, LongTTL, redlock.RetryEvery(10*time.Minute))
		holdsFor(t, masters, 5*time.Minute)
		began := time.Now()
		Settle(30 * time.Second)
		Must(t, w.Get(t).Release(t.Context()))
		if took := w.At.Sub(began); took < atOnce || took > 30*time.Second {
			t.Errorf("the waiter came %v after the release, want some seconds: no notification, and one question", took)
		}
	})
}

// queueUp makes waiters enter the key's queue on all masters. They do nothing else.
func queueUp(t *testing.T, masters redlocktest.Masters, waiters ...string) {
	t.Helper()
	for i, name := range waiters {
		r := single.Request{
			Op: single.Acquire, Keys: []string{Key}, Owner: name, TTL: time.Second, Waiter: name, Waited: time.Hour +
				time.Duration(i),
		}
		for _, m := range masters {
			m.Do(t.Context(), []*single.Call{{Request: &r}})
		}
	}
}

// The processes of twelve waiters have died. They do not delay the waiters behind them, however seldom these ask. The
// same holds for a key that is kept, and for a key that readers share.
func TestHazard108DeadWaitersCostNoHandoff(t *testing.T) {
	var dead []string
	for i := range 12 {
		dead = append(dead, fmt.Sprint("dead ", i))
	}
	for name, c := range map[string]struct{ holds, waits []redlock.Option }{
		"a plain lock": {}, "a writer behind a reader": {
			[]redlock.Option{redlock.Shared()}, []redlock.Option{redlock.Exclusive()},
		},
		"a kept key": {[]redlock.Option{redlock.MinHold(65 * time.Second)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			InMemory(t, func(t *testing.T, masters redlocktest.Masters, other *redlock.Locker) {
				// so it asks after 24, 48, 72 s
				l := masters.Locker(t, redlock.Options{Jitter: func(time.Duration) time.Duration { return 0 }})
				held := Acquire(t, other, 5*time.Minute, c.holds...)
				queueUp(t, masters, dead...)
				w := Wait(t, t.Context(), l, Key, LongTTL, append(c.waits, redlock.RetryEvery(time.Hour))...)
				Settle(time.Minute)
				released := time.Now()
				Must(t, held.Release(t.Context()))
				if name == "a kept key" {
					Settle(5 * time.Second)
					released = time.Now() // it is free by itself
				}
				comesAtOnce(t, w, released)
			})
		})
	}
}

// A key stays kept after its release, and waiters that know until when are cancelled before it is free. A waiter that
// is left gets the key then. A process has one position for all of its waiters, and the latest request of any waiter
// sets the age of the position. So when the oldest waiter is cancelled, another process may come first, without a
// notification.
func TestSomeWaiterKnowsOfAKeptKeyWhenOthersStopWaiting(t *testing.T) {
	const kept, ms = 5 * time.Second, time.Millisecond
	type end struct {
		waiter int
		at     time.Duration // since the acquisition
	}
	for name, c := range map[string]struct {
		processes []int // of each waiter
		ends      []end
	}{
		"at once": {[]int{0, 1}, []end{{0, 2 * ms}}},
		"later":   {[]int{0, 1}, []end{{0, 3 * time.Second}}},
		"when the key has just become free, and it has not tried yet": {[]int{0, 1}, []end{{0, kept + 53*ms}}},
		"before another of the same process":                          {[]int{0, 0}, []end{{0, time.Second}}},
		"of another process than one between two": {
			[]int{0, 1, 0}, []end{{0, 100 * ms}, {2, 200 * ms}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			InMemory(t, func(t *testing.T, masters redlocktest.Masters, holder *redlock.Locker) {
				processes := []*redlock.Locker{
					masters.Locker(t, redlock.Options{Jitter: func(d time.Duration) time.Duration { return d - 1 }}),
					masters.Locker(t, redlock.Options{}),
				}
				lock := Acquire(t, holder, LongTTL, redlock.MinHold(kept))
				var waits []*Waiting
				var stops []context.CancelFunc
				for _, i := range c.processes {
					ctx, stop := context.WithCancel(t.Context())
					t.Cleanup(stop)
					waits = append(waits, Wait(t, ctx, processes[i], Key, LongTTL, redlock.RetryEvery(time.Hour)))
					stops = append(stops, stop)
					Settle(ms)
				}
				began := time.Now().Add(-time.Duration(len(waits)) * ms)
				Must(t, lock.Release(t.Context()))
				for _, e := range c.ends {
					Settle(time.Until(began.Add(e.at)))
					stops[e.waiter]()
					Is(t, waits[e.waiter].Fail(t), context.Canceled)
					waits[e.waiter] = nil
				}
				for _, w := range waits {
					if w == nil {
						continue
					}
					Must(t, w.Get(t).Release(t.Context()))
					if took := w.At.Sub(began); took < kept || took > kept+atOnce {
						t.Errorf("the key was kept until %v, and the waiter had it at %v", kept, took)
					}
				}
			})
		})
	}
}

// seldom plays processes that use a key which is held for minutes and may be kept after that. Their goroutines ask
// once an hour and are cancelled at any time. taken counts acquisitions. idle is the longest time with a free key and
// a waiting goroutine.
func seldom(t *testing.T, seed uint64) (idle time.Duration, taken int) {
	t.Helper()
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, _ *redlock.Locker) {
		random := rand.New(rand.NewPCG(seed, 0))
		masters.SlowDown(time.Duration(random.IntN(3)) * 5 * time.Millisecond)
		var mu sync.Mutex
		waits, play := make(map[context.Context]bool), sync.WaitGroup{}
		until := time.Now().Add(time.Hour)
		for range 4 {
			l := masters.Locker(t, redlock.Options{})
			for range 1 + random.IntN(5)/4 { // in company they ask more often
				random := rand.New(rand.NewPCG(seed, random.Uint64()))
				some := func(d time.Duration) time.Duration {
					return time.Duration(random.Int64N(int64(d))) * time.Duration(random.IntN(2))
				}
				play.Go(func() {
					for time.Now().Before(until) {
						opts, work := []redlock.Option{redlock.RetryEvery(time.Hour)}, 3*time.Minute
						if random.IntN(3) > 0 {
							work = 10 * time.Second
							opts = append(opts, redlock.MinHold(time.Duration(10+random.IntN(20))*time.Second))
						}
						ctx, cancel := context.WithTimeout(t.Context(),
							time.Duration(1+random.IntN([]int{30, 1000}[random.IntN(2)]))*time.Second)
						mu.Lock()
						waits[ctx] = true
						mu.Unlock()
						lock, err := l.Acquire(ctx, Key, 10*time.Minute, opts...)
						mu.Lock()
						delete(waits, ctx)
						mu.Unlock()
						cancel()
						if err == nil {
							mu.Lock()
							taken++
							mu.Unlock()
							Pass(some(work))
							_ = lock.Release(t.Context())
						}
						// an attempt must not overtake what ends the wait before
						Pass(time.Second + some(5*time.Minute))
					}
				})
			}
		}
		const step = 500 * time.Millisecond
		before := 0
		for free := time.Duration(0); time.Now().Before(until); Pass(step) {
			mu.Lock()
			if free += step; len(masters.Held()) > 0 || len(waits) == 0 || taken > before {
				free, before = 0, taken
			}
			idle = max(idle, free)
			mu.Unlock()
		}
		play.Wait()
	})
	return idle, taken
}

// A key that is kept after its release frees itself, and no master says so. A waiter that asks seldom asks then. It
// does so too if the key is in its last millisecond, when masters report a remaining time of 0.
func TestAWaiterThatAsksInTheLastMillisecondOfAKeptKeyAsksAgain(t *testing.T) {
	const kept = 10 * time.Second
	const end = kept + kept/100 + 2*time.Millisecond // by the masters' clocks, which may be slower
	for at := end - time.Millisecond; at <= end+2*time.Millisecond; at += 150 * time.Microsecond {
		InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
			began := time.Now()
			lock, err := l.Acquire(t.Context(), Key, LongTTL, redlock.MinHold(kept))
			Must(t, err)
			Must(t, lock.Release(t.Context()))
			other := masters.Locker(t, redlock.Options{})
			_, err = other.Acquire(Within(t, kept/2), Key, LongTTL, redlock.RetryEvery(time.Hour)) // now it listens
			Is(t, err, redlock.ErrHeld)
			Pass(time.Until(began.Add(at)))
			w := Wait(t, t.Context(), other, Key, LongTTL, redlock.RetryEvery(time.Hour))
			Must(t, w.Get(t).Release(t.Context()))
			if took := w.At.Sub(began) - end; took > atOnce {
				t.Errorf("it asked at %v, and came %v after the end", at, took)
			}
		})
	}
}

// Waiters in front may be cancelled and their notifications may be lost. A waiter still takes a free key soon.
func TestAFreeKeyDoesNotWaitForAWaiterWithALongRetryEvery(t *testing.T) {
	for seed := range uint64(soak.Or(2, 400)) {
		idle, taken := seldom(t, seed)
		if idle > atOnce {
			t.Errorf("seed %d: the key was free for %v while a goroutine waited", seed, idle)
		}
		if taken < 10 {
			t.Errorf("seed %d: the key was taken %d times only", seed, taken)
		}
	}
}
