package contend_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// Locks are passed on between goroutines of one Locker: see internal/hold/pass.go.

const passTTL = 10 * time.Second // its window is a tenth of a second

// line is goroutines of one Locker that wait for the key, in this order.
type line struct {
	t    *testing.T
	l    *redlock.Locker
	got  []chan *redlock.Lock
	ends []context.CancelFunc
}

// newLine makes n goroutines wait for a key that another client holds. Then it gives the key to the first of the n,
// which gets it from the masters.
func newLine(t *testing.T, l *redlock.Locker, n int, opts ...redlock.Option) (*line, *redlock.Lock) {
	t.Helper()
	holder := Acquire(t, l, passTTL)
	q := &line{t: t, l: l}
	for range n {
		q.add(passTTL, opts...)
	}
	Must(t, holder.Release(t.Context()))
	first := q.next(0)
	return q, first
}

// add makes one more goroutine wait.
func (q *line) add(ttl time.Duration, opts ...redlock.Option) {
	q.t.Helper()
	ctx, cancel := context.WithCancel(q.t.Context())
	q.t.Cleanup(cancel)
	got := make(chan *redlock.Lock, 1)
	q.got, q.ends = append(q.got, got), append(q.ends, cancel)
	go func() {
		lock, err := q.l.Acquire(ctx, Key, ttl, opts...)
		if err != nil && ctx.Err() == nil && !errors.Is(err, redlock.ErrClosed) {
			q.t.Errorf("waiter: %v", err)
		}
		if lock != nil {
			q.t.Cleanup(func() { _ = lock.Release(context.Background()) })
		}
		got <- lock
	}()
	synctest.Wait()
}

// next returns the lock of the i-th goroutine in the line.
func (q *line) next(i int) *redlock.Lock {
	q.t.Helper()
	select {
	case lock := <-q.got[i]:
		if lock == nil {
			q.t.Fatalf("waiter %d got no lock", i)
		}
		return lock
	case <-time.After(time.Hour):
		q.t.Fatalf("waiter %d has waited for an hour", i)
		return nil
	}
}

// passed releases a lock, which has to be passed on to the i-th goroutine in the line.
func (q *line) passed(lock *redlock.Lock, i int) *redlock.Lock {
	q.t.Helper()
	Must(q.t, lock.Release(q.t.Context()))
	next := q.next(i)
	if next.Owner() != lock.Owner() {
		q.t.Fatalf("the lock was not passed on to waiter %d", i)
	}
	return next
}

func TestAReleasedLockIsPassedOnWithoutAskingTheMasters(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		events := make(chan redlock.Event, 1000)
		l := masters.Locker(t, redlock.Options{Observer: func(e redlock.Event) { events <- e }})
		q, first := newLine(t, l, 4)
		synctest.Wait()
		asked := masters.Asked()
		ctx := first.Context(t.Context())
		for i := 1; i < 4; i++ {
			Pass(time.Millisecond)
			Must(t, first.Release(t.Context()))
			Is(t, first.Err(), redlock.ErrNotHeld)
			if !errors.Is(context.Cause(ctx), redlock.ErrNotHeld) || !Over(first) {
				t.Errorf("lock %d, which was passed on, goes on: %v", i-1, context.Cause(ctx))
			}
			Must(t, first.Release(t.Context())) // again, and the next one keeps it
			next := q.next(i)
			if next.Owner() != first.Owner() || next.Err() != nil {
				t.Errorf("lock %d: owner %q after %q, %v", i, next.ID(), first.ID(), next.Err())
			}
			if left, full := next.Remaining(),
				passTTL-passTTL/100-2*time.Millisecond; left != full-
				time.Duration(i)*time.Millisecond {
				t.Errorf("lock %d has %v left of %v, and was passed on after %d ms", i, left, full, i)
			}
			Is(t, first.Extend(t.Context(), passTTL), redlock.ErrNotHeld)
			first, ctx = next, next.Context(t.Context())
		}
		synctest.Wait()
		if n := masters.Asked(); n != asked {
			t.Errorf("the masters were asked %d times by three passes", n-asked)
		}
		Must(t, first.Extend(t.Context(), passTTL)) // the last has all that an acquired one has
		Must(t, first.Verify(t.Context()))
		Must(t, first.Release(t.Context()))
		Settle(time.Second)
		masters.AllFree(t)
		passes := 0
		for len(events) > 0 {
			if e := <-events; e.Kind == redlock.EventPass {
				passes++
				if !e.Held || e.HeldFor < time.Millisecond || e.Key != Key {
					t.Errorf("event %+v", e)
				}
			}
		}
		if passes != 3 {
			t.Errorf("%d EventPass events, want 3", passes)
		}
	})
}

// In these cases the next holder has to get its lock from the masters, and then it has another owner value.
func TestSomeReleasesGoToTheMastersInsteadOfAWaiter(t *testing.T) {
	for name, tt := range map[string]struct {
		opts redlock.Options
		// before changes the lock before it is released.
		before func(t *testing.T, q *line, lock *redlock.Lock, masters Fakes)
		behind []redlock.Option
	}{
		"when the window is over": {before: func(*testing.T, *line, *redlock.Lock, Fakes) {
			Pass(100 * time.Millisecond)
		}},
		"when it was extended": {before: func(t *testing.T, _ *line, k *redlock.Lock, _ Fakes) {
			Must(t, k.Extend(t.Context(), passTTL))
		}},
		"when its extension has failed": {before: extendInVain},
		"when Verify has failed":        {before: verifyInVain},
		"to one that wants readers out": {behind: []redlock.Option{redlock.Exclusive()}},
		"to one whose key is to stay":   {behind: []redlock.Option{redlock.MinHold(time.Second)}},
		"to one that wants more keys":   {behind: []redlock.Option{redlock.AndKeys("another")}},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := NewFakes(3)
			l := masters.Locker(t, tt.opts)
			q, first := newLine(t, l, 2, tt.behind...)
			if tt.before != nil {
				tt.before(t, q, first, masters)
			}
			Must(t, first.Release(t.Context()))
			if next := q.next(1); next.Owner() == first.Owner() {
				t.Error("the lock was passed on")
			}
		})
	}
}

func extendInVain(t *testing.T, _ *line, k *redlock.Lock, masters Fakes) {
	masters[0].Behave(On(single.Extend, Act{Err: ErrSilent}))
	masters[1].Behave(On(single.Extend, Act{Err: ErrSilent}))
	Is(t, k.Extend(t.Context(), passTTL), redlock.ErrNoQuorum)
}

func verifyInVain(t *testing.T, _ *line, k *redlock.Lock, masters Fakes) {
	masters[0].Behave(On(single.Extend, Act{Err: ErrSilent}))
	masters[1].Behave(On(single.Extend, Act{Err: ErrSilent}))
	Is(t, k.Verify(t.Context()), redlock.ErrNoQuorum)
}

// The next holder gets no more time than the masters keep the key, and the masters keep the key for no longer than
// that holder asked for.
func TestALockIsPassedOnOnlyToAWaiterWhoseTTLCoversIt(t *testing.T) {
	for _, ttl := range []time.Duration{passTTL / 2, 2 * passTTL} {
		WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
			q, first := newLine(t, l, 2)
			q.add(ttl)
			Must(t, q.passed(first, 1).Release(t.Context()))
			if third := q.next(2); third.Owner() == first.Owner() {
				t.Errorf("a lock of %v was passed on to one that asks for %v", passTTL, ttl)
			}
		})
	}
}

// When the window is over, other Lockers have their turn, even if the lock would last long enough for another waiter.
func TestALockIsPassedOnOnlyWithinItsWindow(t *testing.T) {
	for after, passed := range map[time.Duration]bool{passTTL / 200: true, time.Second: false} {
		WithLocker(t, 3, func(t *testing.T, _ Fakes, l *redlock.Locker) {
			q, first := newLine(t, l, 2)
			q.ends[1]()
			synctest.Wait()
			Pass(after)
			// The waiter asks for no more than the remaining time of the lock, so that only the window can prevent
			// the passing.
			whole := first.Remaining() + passTTL/100
			q.add(time.Duration(float64(whole+2*time.Millisecond) / (1 - redlock.DefaultDriftFactor)))
			synctest.Wait()
			Must(t, first.Release(t.Context()))
			if next := q.next(2); (next.Owner() == first.Owner()) != passed {
				t.Errorf("%v after its acquisition the lock was passed on: %t, want %t", after, !passed, passed)
			}
		})
	}
}

// TestAPassedLockEndsBeforeItsKeyDoes: whatever was passed on, and to how many, no lock is valid for longer than
// masters have its key.
func TestAPassedLockEndsBeforeItsKeyDoes(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		q, k := newLine(t, l, 20)
		owner, passed := k.Owner(), 0
		for i := 1; i < 20; i++ {
			Pass(9 * time.Millisecond)
			Must(t, k.Release(t.Context()))
			k = q.next(i)
			if k.Owner() != owner {
				break
			}
			passed++
			kept := 0 // one master may have refused the key, which the lock before was yet to leave there
			for _, m := range masters {
				m.Mu.Lock()
				if !m.Keys[Key].Expires.Before(k.Until()) {
					kept++
				}
				m.Mu.Unlock()
			}
			if kept < 2 {
				t.Errorf("lock %d is valid until %v, and %d masters keep the key that long", i, k.Until(), kept)
			}
		}
		if passed < 10 || passed > 11 {
			t.Errorf("%d were passed on, and a window has room for 11", passed)
		}
	})
}

// A master that answers the acquisition late, when the lock has been passed on, is released as any other.
func TestStragglersOfALockThatWasPassedOnAreReleased(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		q, first := newLine(t, l, 3, redlock.AutoRenew())
		Must(t, first.Release(t.Context()))
		second := q.next(1) // from here on the third master is late
		Settle(time.Second) // past the window: the next acquisition is from the masters
		masters[2].Behave(On(single.Acquire, Act{Before: 300 * time.Millisecond}))
		q.add(passTTL)
		q.add(passTTL)
		Must(t, second.Release(t.Context()))
		third := q.next(2)
		Must(t, third.Release(t.Context()))
		fourth := q.next(3)
		if fourth.Owner() != third.Owner() || masters[2].Holder() != "" {
			t.Fatalf("the third master is not late, or %s was not passed on", third.ID())
		}
		Must(t, q.passed(fourth, 4).Release(t.Context()))
		Settle(time.Second)
		masters.AllFree(t)
	})
}

// Close refuses the waiters, and waits for the holder to which the lock was passed.
func TestCloseRefusesWaitersAndWaitsForAPassedLock(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		q, first := newLine(t, l, 3)
		Must(t, first.Release(t.Context()))
		second := q.next(1)
		closed := make(chan error)
		go func() { closed <- l.Close(t.Context()) }()
		synctest.Wait()
		if lock := <-q.got[2]; lock != nil {
			t.Errorf("a waiter got the lock from a Locker that is being closed")
		}
		if err := second.Err(); err != nil {
			t.Errorf("the lock that was passed on: %v", err)
		}
		Must(t, second.Release(t.Context()))
		Must(t, <-closed)
		masters.AllFree(t)
	})
}

// When the context of Close ends, Close ends a lock that was passed on like every other lock.
func TestCloseEndsAPassedLockWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := NewFakes(3)
		l, err := redlock.New(masters.Masters(), redlock.Options{Clock: NewClock()})
		Must(t, err)
		q, first := newLine(t, l, 2)
		Must(t, first.Release(t.Context()))
		second := q.next(1)
		Is(t, l.Close(Within(t, time.Second)), context.DeadlineExceeded)
		Is(t, second.Err(), redlock.ErrClosed)
	})
}

// A passed lock is renewed, lapses and has MaxHold as any other.
func TestAPassedLockIsRenewedAndLapsesLikeAnyOther(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []redlock.Option
		ends time.Duration
	}{
		"renewed": {[]redlock.Option{redlock.AutoRenew()}, 0},
		"lapses":  {nil, passTTL - passTTL/100 - 2*time.Millisecond},
		"MaxHold": {[]redlock.Option{redlock.AutoRenew(), redlock.MaxHold(15 * time.Second)}, 15 * time.Second},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := NewFakes(3)
			l := masters.Locker(t, redlock.Options{})
			q, first := newLine(t, l, 3, tt.opts...)
			second := q.passed(first, 1)
			began := time.Now()
			select {
			case <-second.Done():
			case <-time.After(20 * time.Second):
			}
			if took := time.Since(began); tt.ends == 0 && second.Err() != nil || tt.ends > 0 &&
				(took > tt.ends || took < tt.ends*9/10) {
				t.Errorf("the lock ended after %v, want %v: %v", took, tt.ends, second.Err())
			}
			if tt.ends > 0 { // the one behind it is woken by its end
				q.next(2)
				return
			}
			Must(t, second.Release(t.Context()))
			Must(t, q.next(2).Release(t.Context()))
		})
	}
}
