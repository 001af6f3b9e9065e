package contend_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// Goroutines that wait for a lock of their own process ask no master while the process passes the lock on. The
// masters would refuse them, and a goroutine with a request on its way can't be passed the lock. That matters where a
// request takes longer than a hold.

// wanting lets n goroutines of a Locker take the key again and again until ctx is done, and calls act while they have
// it.
func wanting(ctx context.Context, all *sync.WaitGroup, l *redlock.Locker, n int, act func()) {
	for range n {
		all.Go(func() {
			for {
				k, err := l.Acquire(ctx, Key, passTTL)
				if err != nil {
					return
				}
				act()
				_ = k.Release(context.Background())
			}
		})
	}
}

// TestTwoGoroutinesPassALockOnAcrossASlowNetwork: each asks again at once, so that there is always one behind the
// holder.
func TestTwoGoroutinesPassALockOnAcrossASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rtt, hold = 5 * time.Millisecond, 100 * time.Microsecond
		masters := redlocktest.New(t, redlocktest.Count(5))
		masters.SlowDown(rtt)
		l := masters.Locker(t, redlock.Options{})
		ctx := Within(t, time.Second)
		var all sync.WaitGroup
		var grants atomic.Int64
		wanting(ctx, &all, l, 2, func() {
			grants.Add(1)
			Pass(hold)
		})
		all.Wait()
		// A hold for each window's share of the second, and some round trips between windows.
		if n, least := grants.Load(), int64(time.Second/hold*7/10); n < least {
			t.Errorf("%d holds in a second, want %d", n, least)
		}
	})
}

// TestAWaiterCanStopWaitingBehindALockThatIsPassedOn: if a waiter is cancelled, its error says that the lock is held,
// although the waiter has asked no master.
func TestAWaiterCanStopWaitingBehindALockThatIsPassedOn(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		q, first := newLine(t, l, 2)
		Must(t, first.Release(t.Context()))
		second := q.next(1) // nobody waits behind it
		synctest.Wait()     // the last master may not have been asked yet for the first lock, which a quorum granted
		asked := masters[0].Count(single.Acquire)
		_, err := l.Acquire(Within(t, 10*time.Millisecond), Key, passTTL)
		if !errors.Is(err, redlock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v", err)
		}
		if n := masters[0].Count(single.Acquire) - asked; n != 0 {
			t.Errorf("the waiter sent %d requests", n)
		}
		Must(t, second.Release(t.Context()))
	})
}

// TestLockersThatPassLocksOnTakeTurns: four Lockers of eight goroutines that always want one key. Each Locker has
// the key for one window at a time. So none is without the key for longer than three windows of the others and one
// more window, which the first turns may take.
func TestLockersThatPassLocksOnTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lockers, window, hold = 4, 100 * time.Millisecond, 100 * time.Microsecond
		masters := redlocktest.New(t, redlocktest.Count(5))
		masters.SlowDown(2 * hold)
		ctx := Within(t, time.Second)
		var mu sync.Mutex
		var last, longest [lockers]time.Duration
		began := time.Now()
		holds := func(i int, has bool) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Since(began)
			if has {
				longest[i] = max(longest[i], now-last[i])
			}
			last[i] = now
		}
		var all sync.WaitGroup
		for i := range lockers {
			l := masters.Locker(t, redlock.Options{})
			wanting(ctx, &all, l, 8, func() {
				holds(i, true)
				Pass(hold)
				holds(i, false)
			})
		}
		all.Wait()
		for i, d := range longest {
			// Twice the time, because a Locker loses a turn if its notification arrives after another Locker's
			// request. Without turns, one Locker would have the key all the time.
			if allowed := (lockers - 1) * window; d < allowed || d > allowed*2 {
				t.Errorf("Locker %d was without the key for %v at a time, %v are allowed for", i, d, allowed)
			}
		}
	})
}

// TestPatienceEndsWhenALockIsNotPassedOn: a waiter asks no master while the lock may still be passed to it. As soon
// as that is impossible, it asks. Otherwise it would be in no master's queue, and would learn of a free key only when
// the window ends.
func TestPatienceEndsWhenALockIsNotPassedOn(t *testing.T) {
	for name, tt := range map[string]struct {
		holder, waiter []redlock.Option
		ttl            time.Duration // of the waiter
		before         func(t *testing.T, held *redlock.Lock, other *redlock.Locker)
	}{
		"another ttl": {ttl: time.Second},
		"fenced":      {ttl: passTTL, waiter: []redlock.Option{redlock.Fenced()}},
		"lapsed": {
			ttl: passTTL, holder: []redlock.Option{redlock.MaxHold(8 * time.Millisecond)},
			before: func(*testing.T, *redlock.Lock, *redlock.Locker) { Pass(10 * time.Millisecond) },
		},
		"extended": {ttl: passTTL, before: func(t *testing.T, held *redlock.Lock, _ *redlock.Locker) {
			Must(t, held.Extend(t.Context(), passTTL))
		}},
		"handed over": {ttl: passTTL, holder: []redlock.Option{redlock.Fenced()}, waiter: []redlock.Option{
			redlock.Fenced(),
		}, before: func(t *testing.T, held *redlock.Lock, other *redlock.Locker) {
			h, err := held.Handover()
			Must(t, err)
			k, err := other.Attach(t.Context(), Sent(t, h), passTTL)
			Must(t, err)
			Must(t, k.Release(t.Context()))
		}},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := redlocktest.New(t, redlocktest.Count(3))
			masters.SlowDown(200 * time.Microsecond)
			l, other := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})
			q, first := newLine(t, l, 2, tt.holder...)
			held := q.passed(first, 1)
			go func() { // a rival, which the release calls first
				if k, err := other.Acquire(t.Context(), Key, passTTL); err == nil {
					_ = k.Release(context.Background())
				}
			}()
			Pass(3 * time.Millisecond)
			q.add(tt.ttl, tt.waiter...)
			Pass(3 * time.Millisecond)
			if tt.before != nil {
				tt.before(t, held, other)
			}
			released := time.Now()
			_ = held.Release(t.Context())
			if _, took := q.next(2), time.Since(released); took > 20*time.Millisecond {
				t.Errorf("the waiter came %v after the release", took)
			}
		})
	}
}

// TestAWaiterThatOnlyPollsGetsAKeyThatIsPassedOn: such a waiter is in no queue, like a client of another library, and
// gets no notification.
func TestAWaiterThatOnlyPollsGetsAKeyThatIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(5))
		masters.SlowDown(200 * time.Microsecond)
		l, other := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})
		ctx := Within(t, 8*time.Second)
		var all sync.WaitGroup
		wanting(ctx, &all, l, 4, func() { Pass(100 * time.Microsecond) })
		polls, got := 0, 0
		for ctx.Err() == nil {
			Pass(2 * time.Millisecond)
			polls++
			if k, err := other.TryAcquire(ctx, Key, passTTL); err == nil {
				got++
				_ = k.Release(context.Background())
			}
		}
		all.Wait()
		if got < 5 { // of eighty windows, a third of which it gets
			t.Errorf("the polling client had the key %d times of %d", got, polls)
		}
	})
}

// stalled is a context with a Done that does not return until the channel is closed. A waiter that uses this context
// does not run until then.
type stalled struct {
	context.Context
	until chan struct{}
}

func (c stalled) Done() <-chan struct{} {
	<-c.until
	return c.Context.Done()
}

// Close refuses all waiters, including a waiter that has not run since. A lock that is released then goes back to the
// masters.
func TestALockIsNotPassedOnOnceCloseHasBegun(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		holder := Acquire(t, l, passTTL)
		q := &line{t: t, l: l}
		q.add(passTTL)
		busy := make(chan struct{})
		release := sync.OnceFunc(func() { close(busy) })
		t.Cleanup(release)
		behind := Wait(t, stalled{t.Context(), busy}, l, Key, passTTL)
		synctest.Wait()
		Must(t, holder.Release(t.Context()))
		first := q.next(0)

		closed := make(chan error, 1)
		go func() { closed <- l.Close(t.Context()) }()
		synctest.Wait()
		Must(t, first.Release(t.Context()))
		synctest.Wait()
		masters.AllFree(t)
		release()
		Is(t, behind.Fail(t), redlock.ErrClosed)
		Must(t, <-closed)
	})
}

// hardOfHearing is a master that loses its notifications.
type hardOfHearing struct{ *redlocktest.Master }

func (d hardOfHearing) Listen(channel string, _ func(), _ func(string)) (stop func()) {
	return d.Master.Listen(channel, func() {}, func(string) {})
}

// The masters have refused a waiter, and then its own process passes it the lock: the masters' queues still list a
// waiter that waits no more. A handover sends no release, and so does not remove it from the queues.
func TestALockThatWasPassedOnAndHandedOverLeavesNoQueueEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		// so that it asks often
		silent := WrapEach(masters, func(_ int, m *redlocktest.Master) redlock.Master { return hardOfHearing{m} })
		l := LockerOver(t, silent, redlock.Options{Clock: masters.Clock()})
		other, third := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})

		masters.Hold(Key)
		first := Wait(t, t.Context(), l, Key, passTTL, redlock.Fenced())
		synctest.Wait()
		// which is not patient
		second := Wait(t, t.Context(), l, Key, passTTL, redlock.Fenced(), redlock.MaxAttempts(1000))
		Settle(time.Second)
		last := Wait(t, t.Context(), third, Key, LongTTL, redlock.RetryEvery(time.Hour))
		Settle(time.Second)
		masters.Release(Key)
		lock := first.Get(t)
		Pass(70 * time.Millisecond) // it asks, and is refused
		Must(t, lock.Release(t.Context()))
		passed := second.Get(t)
		if passed.Owner() != lock.Owner() {
			t.Fatal("not passed on: this shows nothing")
		}

		h, err := passed.Handover()
		Must(t, err)
		attached, err := other.Attach(t.Context(), Sent(t, h), passTTL)
		Must(t, err)
		Settle(time.Second)
		released := time.Now()
		Must(t, attached.Release(t.Context()))
		comesAtOnce(t, last, released)
	})
}
