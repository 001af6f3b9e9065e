package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// watched is an Observer that counts events and runs the test's own function.
type watched struct {
	mu    sync.Mutex
	kinds map[redlock.EventKind]int
	does  func(redlock.Event)
}

func (w *watched) observe(e redlock.Event) {
	w.mu.Lock()
	if w.kinds == nil {
		w.kinds = make(map[redlock.EventKind]int)
	}
	w.kinds[e.Kind]++
	w.mu.Unlock()
	w.does(e)
}

func (w *watched) count(k redlock.EventKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kinds[k]
}

// everything makes a Locker send every kind of event, in every operation that an Observer could block. Before a lock
// ends without a Release, everything calls lapsing with it.
func everything(t *testing.T, l *redlock.Locker, masters Fakes, c *Clock, lapsing func(*redlock.Lock)) {
	t.Helper()
	ctx := t.Context()
	lock := Acquire(t, l, LongTTL)
	_, err := l.TryAcquire(ctx, Key, LongTTL)
	Is(t, err, redlock.ErrHeld)
	Must(t, lock.Extend(ctx, LongTTL))
	Must(t, lock.Release(ctx))

	lapses := func(end func(*redlock.Lock), opts ...redlock.Option) {
		t.Helper()
		lock := Acquire(t, l, time.Second, opts...)
		lapsing(lock)
		inner := lock.Context(ctx)
		until := lock.Until()
		end(lock)
		if lock.Err() == nil {
			t.Error("a lock did not end")
		}
		<-lock.Done()
		<-inner.Done()
		if late := time.Since(until); late > 0 {
			t.Errorf("Done closed %v after the bound", late)
		}
		Settle(5 * time.Second) // what is left on masters
		masters.Behave(nil)
	}
	lapses(func(lock *redlock.Lock) { <-lock.Done() })
	lapses(func(lock *redlock.Lock) { <-lock.Done() }, redlock.MaxHold(300*time.Millisecond), redlock.AutoRenew())
	lapses(func(*redlock.Lock) { c.Suspend(time.Hour) }) // Err finds out
	lapses(func(lock *redlock.Lock) {                    // lost on a majority
		masters.Forget()
		Is(t, lock.Extend(ctx, time.Second), redlock.ErrNotHeld)
	})
	lapses(func(lock *redlock.Lock) { // a renewal finds out
		masters.Forget()
		<-lock.Done()
	}, redlock.AutoRenew())

	lock = Acquire(t, l, time.Second) // one master confirms late, another one never
	masters[0].Behave(On(single.Release, Act{Mute: true}))
	masters[1].Behave(On(single.Release, Act{Lost: true}))
	_ = lock.Release(ctx)
	Settle(500 * time.Millisecond)
	masters[0].Behave(nil)
	Settle(5 * time.Second)
	masters.Behave(nil)

	lock = Acquire(t, l, LongTTL)
	lapsing(lock)
	ended, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = l.Close(ended)
	Is(t, lock.Err(), redlock.ErrClosed)
	<-lock.Done()
}

// blocks reports that a mutex of the Locker or of its lock stays locked: methods that take them do not return.
func blocks(l *redlock.Locker, lock *redlock.Lock) bool {
	var returned atomic.Bool
	go func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		l.Held()
		l.Pending()
		lock.Token()
		lock.Context(ctx)
		returned.Store(true)
	}()
	for range 1_000_000 {
		if returned.Load() {
			return false
		}
		runtime.Gosched() // a mutex may be somebody else's, who gives it up
	}
	return true
}

func TestHazard77TheObserverIsCalledWithoutAnyMutexAndAfterDone(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var l *redlock.Locker
		var lapsing atomic.Pointer[redlock.Lock]
		w := &watched{does: func(e redlock.Event) {
			if blocks(l, lapsing.Load()) {
				t.Errorf("%v: told with a mutex held", e.Kind)
				return // to ask the lock would be a deadlock
			}
			if e.Kind == redlock.EventLost && !Over(lapsing.Load()) {
				t.Errorf("the observer got %v before Done was closed", e.Err)
			}
		}}
		c := NewClock()
		l = masters.Locker(t, redlock.Options{Clock: c, Observer: w.observe})
		everything(t, l, masters, c, func(k *redlock.Lock) { lapsing.Store(k); _ = k.Done() })
		Settle(time.Second)
		for k := redlock.EventAcquire; k <= redlock.EventReturned; k++ {
			if w.count(k) == 0 {
				t.Errorf("no event of kind %v: this test shows nothing about it", k)
			}
		}
		if n := w.count(redlock.EventLost); n != 6 {
			t.Errorf("the observer got %d lost locks, want 6", n)
		}
	})
}

func TestHazard77ASlowObserverDelaysNoLock(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		c := NewClock()
		l := masters.Locker(t, redlock.Options{Clock: c, Observer: func(redlock.Event) {
			Pass(700 * time.Millisecond)
		}})
		other := Acquire(t, l, time.Second, redlock.AutoRenew(), redlock.AndKeys("another"))
		Must(t, other.Release(t.Context()))
		began := time.Now()
		everything(t, l, masters, c, func(*redlock.Lock) {})
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
		Settle(time.Hour) // until the observer has been told of it all
	})
}

func TestHazard77APanickingObserverLeavesNoMutexLockedAndCloseReportsIt(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		for name, opts := range map[string]func(redlock.Event){
			//nolint:forbidigo // that is what is tested
			"panics": func(redlock.Event) { panic("a bug of the observer's") },
			"exits":  func(redlock.Event) { runtime.Goexit() },
		} {
			c := NewClock()
			var told atomic.Int64
			l, err := redlock.New(masters.Masters(),
				redlock.Options{Clock: c, Observer: func(e redlock.Event) { told.Add(1); opts(e) }})
			Must(t, err)
			lock := Acquire(t, l, time.Second)
			c.Suspend(time.Hour)
			Is(t, lock.Err(), redlock.ErrNotHeld) // tells of the loss
			Is(t, lock.Err(), redlock.ErrNotHeld)
			if left := lock.Remaining(); left != 0 {
				t.Errorf("%v are left", left)
			}
			Settle(time.Second)
			Must(t, Acquire(t, l, time.Second).Release(t.Context()))
			Settle(time.Second)
			err = l.Close(t.Context())
			if name == "panics" && (err == nil || !strings.Contains(err.Error(), "a bug of the observer's")) {
				t.Errorf("Close returned %v", err)
			}
			if name == "exits" {
				Must(t, err)
			}
			if told.Load() < 10 {
				t.Errorf("%s: told of %d events", name, told.Load())
			}
		}
	})
}

func TestHazard77AnObserverMayAskTheLockAndBlock(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var l *redlock.Locker
		var lost atomic.Pointer[redlock.Lock]
		release := make(chan struct{})
		asked := make(chan error, 1)
		l = masters.Locker(t, redlock.Options{Observer: func(e redlock.Event) {
			if e.Kind != redlock.EventLost {
				return
			}
			lock := lost.Load()
			err := lock.Err()
			if lock.Remaining() != 0 || lock.Until().After(time.Now()) || !Over(lock) ||
				lock.Context(t.Context()).Err() == nil {
				err = errors.New("the lock does not know of its end")
			}
			if _, failed := l.Holder(t.Context(), Key); failed != nil {
				err = failed
			}
			_ = lock.Release(t.Context())
			asked <- err
			<-release
		}})
		lock := Acquire(t, l, time.Second)
		lost.Store(lock)
		Is(t, <-asked, redlock.ErrNotHeld)
		for range 100 { // while it blocks
			lock := Acquire(t, l, time.Second, redlock.AutoRenew())
			Pass(2 * time.Second)
			Must(t, lock.Release(t.Context()))
		}
		close(release)
	})
}

func TestHazard77DroppedEventsAreCounted(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		begin := make(chan struct{})
		var told, missed, returned atomic.Int64
		l := masters.Locker(t, redlock.Options{Observer: func(e redlock.Event) {
			<-begin
			told.Add(1)
			missed.Add(int64(e.Missed))
			if e.Kind == redlock.EventReturned {
				returned.Add(1)
			}
		}})
		for range maxEvents / 4 {
			Must(t, Acquire(t, l, time.Second).Release(t.Context()))
		}
		Settle(time.Second)
		if told.Load() != 0 {
			t.Error("the observer did not block")
		}
		close(begin)
		Settle(time.Second)
		if n := told.Load(); n < maxEvents || n > maxEvents+1 {
			t.Errorf("the observer got %d events", n)
		}
		before := returned.Load()
		Must(t, Acquire(t, l, time.Second).Release(t.Context()))
		Settle(time.Second)
		if missed.Load() == 0 || returned.Load() != before+1 {
			t.Errorf("%d missed events were counted, and then %d told", missed.Load(), returned.Load()-before)
		}
	})
}

func TestHazard77CloseReportsEventsThatWereDroppedAtTheEnd(t *testing.T) {
	for _, more := range []int{0, 3} {
		Bubble(t, 3, func(t *testing.T, masters Fakes) {
			begin := make(chan struct{})
			var told, missed atomic.Int64
			l, err := redlock.New([]redlock.Master{masters[0]},
				redlock.Options{Clock: NewClock(), Observer: func(e redlock.Event) {
					<-begin
					told.Add(1)
					missed.Add(int64(e.Missed))
				}})
			Must(t, err)
			for range maxEvents / 5 { // of 5 events each: two votes, two rounds, one return
				Must(t, Acquire(t, l, time.Second).Release(t.Context()))
			}
			for range more {
				Must(t, Acquire(t, l, time.Second).Release(t.Context()))
			}
			synctest.Wait()
			closed := make(chan error, 1)
			go func() { closed <- l.Close(context.Background()) }()
			synctest.Wait()
			close(begin)
			err = <-closed
			lost := int64(5*(maxEvents/5+more)) - told.Load()
			switch {
			case lost <= 0:
				Must(t, err)
			case err == nil || !strings.Contains(err.Error(), fmt.Sprintf("last %d events", lost)):
				t.Errorf("the observer got %d events, %d missed events were counted, and Close returned %v",
					told.Load(), missed.Load(), err)
			}
			if more > 0 && lost <= 0 {
				t.Errorf("%d events, and none was missed", told.Load())
			}
		})
	}
}

func TestHazard77CloseDoesNotWaitForAnObserverThatNeverReturns(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		stuck := make(chan struct{})
		l, err := redlock.New([]redlock.Master{masters[0]},
			redlock.Options{Clock: NewClock(), Observer: func(redlock.Event) { <-stuck }})
		Must(t, err)
		Must(t, Acquire(t, l, time.Second).Release(t.Context()))
		began := time.Now()
		if err := l.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "Observer") {
			t.Errorf("Close returned %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
		close(stuck)
	})
}

// Close waits for an observer that returns from each call, however many calls remain. If the context ends first,
// Close returns and reports it.
func TestCloseWaitsForAnObserverThatIsSlow(t *testing.T) {
	const locks, each = 40, 100 * time.Millisecond
	for name, atMost := range map[string]time.Duration{
		"for as long as it takes": time.Hour, "until its context ends": time.Second,
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := NewFakes(3)
			told := 0
			l, err := redlock.New([]redlock.Master{masters[0]},
				redlock.Options{Clock: NewClock(), Observer: func(redlock.Event) {
					<-time.After(each)
					told++
				}})
			Must(t, err)
			for range locks {
				Must(t, Acquire(t, l, time.Second).Release(t.Context()))
			}
			ctx := Within(t, atMost)
			began := time.Now()
			err = l.Close(ctx)
			took := time.Since(began)
			if atMost == time.Hour {
				if err != nil || told < 3*locks || took < 4*time.Second {
					t.Errorf("Close took %v and returned %v after %d events", took, err, told)
				}
				return
			}
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Observer") ||
				took > atMost {
				t.Errorf("Close took %v and returned %v", took, err)
			}
			synctest.Wait()
			<-time.After(time.Minute) // the rest is told all the same
		})
	}
}
