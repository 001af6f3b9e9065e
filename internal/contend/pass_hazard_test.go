package contend_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// These tests try failures of passing locks on, real or possible. An attack on their first form found these
// failures.

// A lock that its holder knows to be lost is not passed on.
func TestALockThatVerifyFoundLostIsNotPassedOn(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		a, b := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})
		q, first := newLine(t, a, 2)
		masters.Forget()
		other, err := b.TryAcquire(t.Context(), Key, passTTL)
		Must(t, err)
		Is(t, first.Verify(t.Context()), redlock.ErrNotHeld)
		Is(t, first.Release(t.Context()), redlock.ErrNotHeld)
		second := (*redlock.Lock)(nil)
		select {
		case second = <-q.got[1]:
		case <-time.After(time.Second):
		}
		if second != nil && second.Err() == nil && other.Err() == nil {
			t.Errorf("there are two holders: %s with %v left, %s with %v left", second.ID(), second.Remaining(),
				other.ID(), other.Remaining())
		}
		Must(t, other.Release(t.Context()))
	})
}

// A check that is under way when its lock is passed on is decided once, and by its own lock.
func TestVerifyIsDecidedWhileItsLockIsPassedOn(t *testing.T) {
	for range 20 {
		WithLocker(t, 5, func(t *testing.T, masters Fakes, l *redlock.Locker) {
			q, first := newLine(t, l, 3)
			masters.Behave(On(single.Extend, Act{Lost: true}))
			done := make(chan error, 1)
			go func() { done <- first.Verify(t.Context()) }()
			synctest.Wait()
			Must(t, first.Release(t.Context()))
			second := q.next(1)
			select {
			case err := <-done:
				if err == nil {
					t.Error("verify: nil")
				}
			case <-time.After(time.Hour):
				t.Fatal("Verify hangs")
			}
			masters.Behave(nil)
			Must(t, second.Release(t.Context()))
		})
	}
}

// hooked is a clock that lets something happen after it was read.
type hooked struct {
	*Clock
	stop atomic.Pointer[func()]
}

// onSecond calls f once, after the second time that the clock is read: the first is Err's, the second pass's.
func (c *hooked) onSecond(f func()) {
	var n atomic.Int32
	c.stop.Store(new(func() {
		if n.Add(1) == 2 {
			c.stop.Store(nil)
			f()
		}
	}))
}

func (c *hooked) Now() time.Duration {
	now := c.Clock.Now()
	if f := c.stop.Load(); f != nil {
		(*f)()
	}
	return now
}

// calling is a master that says it has called another process when a key is released.
type calling struct{ *Fake }

func (m calling) Do(ctx context.Context, batch []*single.Call) {
	m.Fake.Do(ctx, batch)
	for _, c := range batch {
		if c.Request.Op == single.Release && c.Err == nil && c.Reply.Outcome == single.Granted {
			c.Reply.Called = true
		}
	}
}

// Release reads the clock, the window ends, and then Release takes the next waiter from the queue. The reminder
// reaches the waiter that was taken. The waiter behind it has to try all the same.
func TestTheNextWaiterTriesWhenTheNotifiedWaiterWasTaken(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		c := &hooked{Clock: NewClock()}
		all := WrapEach(masters, func(_ int, m *Fake) redlock.Master { return calling{m} })
		l := LockerOver(t, all, redlock.Options{Clock: c})
		q, first := newLine(t, l, 3)
		Pass(99 * time.Millisecond)
		c.onSecond(func() { Pass(2 * time.Millisecond) })
		second := q.passed(first, 1)
		Pass(5 * time.Second)
		acquires := masters[0].Count(single.Acquire)
		Must(t, second.Release(t.Context())) // a waiter of another process is called
		Pass(time.Minute)
		masters.AllFree(t)
		t.Logf("%d acquisitions before the release, %d a minute later; the key is free", acquires,
			masters[0].Count(single.Acquire))
		select {
		case <-q.got[2]:
		case <-time.After(24 * time.Hour):
			t.Errorf("the last waiter has waited for a free key for a day: %d acquisitions",
				masters[0].Count(single.Acquire))
			q.ends[2]()
		}
	})
}

// The time at which a lock needs attention comes while the lock is passed on: nothing of the one before is released
// when its own validity is over.
func TestALockThatWasPassedOnNeedsNoAttention(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		c := &hooked{Clock: NewClock()}
		l := masters.Locker(t, redlock.Options{Clock: c})
		holder := Acquire(t, l, passTTL)
		q := &line{t: t, l: l}
		q.add(passTTL, redlock.MaxHold(95*time.Millisecond), redlock.Grace(50*time.Millisecond))
		q.add(passTTL)
		masters.Behave(On(single.Release, Act{After: time.Millisecond})) // so all have it when the waiter asks
		Must(t, holder.Release(t.Context()))
		first := q.next(0)
		masters.Behave(nil)
		Pass(44 * time.Millisecond)
		grace := first.Remaining() - 50*time.Millisecond
		c.onSecond(func() { // with the lock's mutex held
			Pass(grace) // now it begins
			for range 1000 {
				runtime.Gosched() // whoever is called for that waits for the mutex now
			}
		})
		second := q.passed(first, 1)
		Pass(60 * time.Millisecond) // the first would be over by now
		if n := masters.Holders(second.Owner()); second.Err() != nil || n != 3 {
			t.Errorf("%d masters have the key of a lock that is held for another %v (%v)", n, second.Remaining(),
				second.Err())
		}
		Must(t, second.Release(t.Context()))
	})
}

// The longest ttl there is does not become negative.
func TestTheLongestTTLIsPassedOn(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		holder := Acquire(t, l, math.MaxInt64)
		q := &line{t: t, l: l}
		for range 3 {
			q.add(math.MaxInt64)
		}
		Must(t, holder.Release(t.Context()))
		for i := range 3 {
			Must(t, q.next(i).Release(t.Context()))
		}
	})
}

// Whatever holders and waiters do, there is one holder at a time, and the key is free at the end.
func TestPassingOnWhileEverythingIsCalledAtOnce(t *testing.T) {
	l := redlocktest.New(t, redlocktest.Count(3)).Locker(t, redlock.Options{})
	var inside, passed atomic.Int32
	last := ""
	Concurrently(12, func(n int) {
		for i := range 150 {
			ttl := LongTTL
			var opts []redlock.Option
			switch (n + i) % 6 {
			case 1:
				opts = append(opts, redlock.AutoRenew())
			case 2:
				opts = append(opts, redlock.MaxHold(LongTTL))
			case 3:
				ttl = LongTTL / 2
			case 4:
				opts = append(opts, redlock.RetryEvery(time.Minute))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(n*i)%50)*time.Millisecond)
			k, err := l.Acquire(ctx, Key, ttl, opts...)
			if err != nil {
				cancel()
				continue
			}
			if inside.Add(1) != 1 {
				t.Error("two goroutines hold the lock")
			}
			if k.Owner() == last {
				passed.Add(1)
			}
			last = k.Owner()
			var users sync.WaitGroup
			users.Go(func() { <-k.Done() })
			users.Go(func() { _ = k.Verify(context.Background()) })
			users.Go(func() { _ = k.Context(context.Background()).Err(); _ = k.Remaining(); _ = k.Until() })
			if i%7 == 0 {
				users.Go(func() { _ = k.Extend(context.Background(), LongTTL) })
			}
			inside.Add(-1)
			for range 3 {
				users.Go(func() { _ = k.Release(context.Background()) })
			}
			users.Wait()
			cancel()
		}
	})
	if passed.Load() == 0 {
		t.Error("no lock was passed on: this test shows nothing")
	}
	k, err := l.Acquire(Within(t, Promptly), Key, LongTTL)
	Must(t, err)
	Must(t, k.Release(t.Context()))
}

// When a holder dies, its key is free after the ttl that this holder asked for. This is so even if the lock was
// passed to it by a holder that asked for more.
func TestAPassedKeyDoesNotOutliveTheTTLOfItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		l, err := redlock.New(masters.All(), redlock.Options{Clock: memmaster.NewClock(0)})
		Must(t, err)
		other := MemLocker(t, masters)
		holder := Acquire(t, l, time.Hour)
		q := &line{t: t, l: l}
		q.add(time.Hour)
		q.add(time.Hour)
		q.add(time.Second) // a third, with a ttl of a second
		Must(t, holder.Release(t.Context()))
		Must(t, q.next(0).Release(t.Context()))
		Must(t, q.next(1).Release(t.Context()))
		short := q.next(2)
		if short.Remaining() == 0 {
			t.Error("the lock is not held")
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Close(dead); !errors.Is(err, context.Canceled) { // as a process that dies: nothing is released
			t.Errorf("Close: %v", err)
		}
		began := time.Now()
		lock, err := other.Acquire(t.Context(), Key, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the holder asked for a ttl of 1s and died; the key was free after %v", took)
		}
		_ = lock.Release(t.Context())
	})
}

// jumping is the clock of a process that stands still while a lock is passed to its second goroutine.
type jumping struct {
	*memmaster.Clock
	jump   atomic.Int64
	jumped atomic.Bool
}

func (c *jumping) Now() time.Duration {
	if c.jump.Load() > 0 && !c.jumped.Load() {
		var pcs [32]uintptr
		frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
		for {
			f, more := frames.Next()
			if strings.HasSuffix(f.Function, ".takeOver") {
				c.jumped.Store(true)
			}
			if !more {
				break
			}
		}
	}
	if c.jumped.Load() {
		return c.Clock.Now() + time.Duration(c.jump.Load())
	}
	return c.Clock.Now()
}

// lateTo lets a process stand still for half a minute while the first goroutine passes a lock to the second, and
// returns the result of the second.
func lateTo(t *testing.T, masters memmaster.Masters, opts ...redlock.Option) (first, second *redlock.Lock,
	err error,
) {
	t.Helper()
	clock := &jumping{Clock: memmaster.NewClock(0)}
	l := LockerOver(t, masters.All(), redlock.Options{Clock: clock})
	holder := Acquire(t, l, 10*time.Second)
	a := Wait(t, t.Context(), l, Key, 10*time.Second)
	synctest.Wait()
	b := Wait(t, Within(t, time.Minute), l, Key, 10*time.Second, opts...)
	synctest.Wait()
	Must(t, holder.Release(t.Context()))
	first = a.Get(t)
	Pass(50 * time.Millisecond) // so that the second one has asked, if it does not wait patiently
	clock.jump.Store(int64(30 * time.Second))
	Must(t, first.Release(t.Context()))
	<-b.Ended
	if !clock.jumped.Load() {
		t.Fatal("the process did not stand still: this shows nothing")
	}
	return first, b.Lock, b.Err
}

// If a passed lock is over before its next holder takes it, the holder does not get it. The wait goes on, as it does
// after a round that was won too late.
func TestAnEndedLockIsNotPassedOn(t *testing.T) {
	for _, opts := range [][]redlock.Option{nil, {redlock.MaxHold(time.Second)}, {redlock.MaxAttempts(1000)}} {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(3)
			first, second, err := lateTo(t, masters, opts...)
			Must(t, err)
			Pass(time.Millisecond) // it has been on its way to the last master when the others had granted it
			if second.Owner() == first.Owner() || second.Err() != nil || masters[0].Owner(Key) != second.Owner() {
				t.Errorf("%d options: the second lock is %v, passed on: %t, error: %v", len(opts), second,
					second.Owner() == first.Owner(), second.Err())
			}
			Must(t, second.Release(t.Context()))
		})
	}
}

// The passed lock was over, and this was the last attempt of the waiter.
func TestAWaitWithItsLastAttemptEndsWithALockThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, lock, err := lateTo(t, memmaster.New(3), redlock.MaxAttempts(2), redlock.RetryEvery(time.Hour))
		if lock != nil || !errors.Is(err, redlock.ErrExpired) {
			t.Errorf("Acquire returned %v, %v, want ErrExpired", lock, err)
		}
	})
}
