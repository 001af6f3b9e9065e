package hazards_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/single"
)

// Each way to hold a lock, and by how much Done has to be ahead of the bound.
func TestHazard53DoneClosesAGraceBeforeTheBound(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		ttl, want time.Duration
		opts      []redlock.Option
	}{
		{20 * ms, ms, nil},
		{time.Second, 20 * ms, nil},
		{10 * time.Second, 200 * ms, nil},
		{time.Hour, 200 * ms, nil},
		{10 * time.Second, 5 * time.Second, []redlock.Option{redlock.Grace(5 * time.Second)}},
		{10 * time.Second, ms, []redlock.Option{redlock.Grace(ms)}},
		{10 * time.Second, 2 * ms, []redlock.Option{redlock.MaxHold(100 * ms)}},
		{10 * time.Second, 10 * ms, []redlock.Option{redlock.MaxHold(100 * ms), redlock.Grace(10 * ms)}},
	} {
		WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
			lock := Acquire(t, l, c.ttl, c.opts...)
			until := lock.Until()
			ctx := lock.Context(t.Context())
			<-lock.Done()
			if early := time.Until(until); early != c.want {
				t.Errorf("ttl %v: Done closed %v before the bound, want %v", c.ttl, early, c.want)
			}
			<-ctx.Done()
			Is(t, lock.Err(), redlock.ErrNotHeld)
			Is(t, context.Cause(ctx), redlock.ErrNotHeld)
			// The holder is about to end its lock. No other holder may begin before the bound.
			Pass(time.Until(until) - 1)
			synctest.Wait()
			if n := masters.Holders(""); n != 3 {
				t.Errorf("ttl %v: before the bound %d masters have the key", c.ttl, n)
			}
			Settle(ms)
			if n := masters.Holders(""); n != 0 {
				t.Errorf("ttl %v: after the bound %d masters have the key", c.ttl, n)
			}
		})
	}
}

func TestHazard53DoAndElectionHaveALongerGrace(t *testing.T) {
	work := map[string]func(l *redlock.Locker, f func(ctx context.Context) error) error{
		"Do": func(l *redlock.Locker, f func(ctx context.Context) error) error {
			return l.Do(context.Background(), Key, 10*time.Second, f)
		},
		"Run": func(l *redlock.Locker, f func(ctx context.Context) error) error {
			e, err := leader.NewElection(l, Key, 10*time.Second)
			if err != nil {
				return err
			}
			return e.Run(context.Background(), func(ctx context.Context, _ *leader.Term) error { return f(ctx) })
		},
	}
	for name, run := range work {
		WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
			enough := errors.New("enough")
			err := run(l, func(ctx context.Context) error {
				began := time.Now()
				masters.Behave(On(single.Extend, Act{Lost: true}))
				<-ctx.Done()
				if took := time.Since(began); took > 9*time.Second {
					t.Errorf("%s: the context ended after %v of a ttl of 10s", name, took)
				}
				if n := masters.Holders(""); n != 3 {
					t.Errorf("%s: the key was given to others while the work was being stopped, on %d masters", name,
						3-n)
				}
				return enough
			})
			Is(t, err, enough)
			masters.Behave(nil)
			Settle(time.Second) // masters that were silent count as down, and are the janitor's
			if n := masters.Holders(""); n != 0 {
				t.Errorf("%s: the work has ended, and %d masters have the key", name, n)
			}
		})
	}
}

// Between the end of the grace and the bound a hold is over here and not on the masters. Whatever comes then ends it
// once.
func TestHazard53WithinTheGraceEveryCallFindsTheLockOver(t *testing.T) {
	for name, come := range map[string]func(t *testing.T, l *redlock.Locker, lock *redlock.Lock){
		"Release": func(t *testing.T, _ *redlock.Locker, lock *redlock.Lock) {
			Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
			Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
		},
		"Extend": func(t *testing.T, _ *redlock.Locker, lock *redlock.Lock) {
			Is(t, lock.Extend(t.Context(), time.Minute), redlock.ErrNotHeld)
		},
		"Done again": func(t *testing.T, _ *redlock.Locker, lock *redlock.Lock) {
			<-lock.Done()
			<-lock.Context(t.Context()).Done()
		},
		"Close": func(t *testing.T, l *redlock.Locker, _ *redlock.Lock) {
			Must(t, l.Close(t.Context()))
		},
		"Close cut short": func(t *testing.T, l *redlock.Locker, lock *redlock.Lock) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			Is(t, l.Close(ctx), context.Canceled)
			Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
		},
		"others": func(t *testing.T, l *redlock.Locker, lock *redlock.Lock) {
			_, err := l.TryAcquire(t.Context(), Key, time.Minute)
			Is(t, err, redlock.ErrHeld)
			until := time.Now().Add(time.Second)
			next := Acquire(t, l, time.Minute)
			if lock.Err() == nil || time.Now().After(until) {
				t.Error("the next holder had to wait for longer")
			}
			Must(t, next.Release(t.Context()))
		},
		"a late renewal": func(t *testing.T, _ *redlock.Locker, lock *redlock.Lock) {
			Pass(900 * time.Millisecond)
			Is(t, lock.Err(), redlock.ErrNotHeld)
		},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := NewFakes(3)
			l := masters.Locker(t, redlock.Options{RequestTimeout: 6 * time.Second})
			opts := []redlock.Option{redlock.Grace(time.Second)}
			if name == "a late renewal" { // decided within the grace: the holder has been told to stop
				masters.Behave(On(single.Extend, Act{After: 5700 * time.Millisecond}))
				opts = append(opts, redlock.AutoRenew())
			}
			lock := Acquire(t, l, 10*time.Second, opts...)
			<-lock.Done()
			masters.Behave(nil)
			come(t, l, lock)
			Settle(2 * time.Second)
			if n := masters.Holders(lock.Owner()); n != 0 && name != "Close cut short" {
				t.Errorf("%d masters have the key", n)
			}
			Is(t, lock.Err(), redlock.ErrNotHeld)
		})
	}
}

func TestGraceIsChecked(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 600 * time.Millisecond})
		for _, opts := range [][]redlock.Option{
			{redlock.Grace(0)},
			{redlock.Grace(-1)},
			{redlock.Grace(5*time.Second + 1)},
			{redlock.Grace(time.Second), redlock.MaxHold(time.Second)},
		} {
			_, err := l.TryAcquire(t.Context(), Key, 10*time.Second, opts...)
			Is(t, err, redlock.ErrInvalid)
		}
		// The drift leaves no more of the ttl than the grace. The masters would grant such a lock again and again,
		// and each time it would be over at once.
		drifting := masters.Locker(t, redlock.Options{DriftFactor: 0.6})
		_, err := drifting.TryAcquire(t.Context(), Key, 10*time.Second, redlock.Grace(4*time.Second))
		Is(t, err, redlock.ErrInvalid)
		_, err = drifting.TryAcquire(t.Context(), Key, 7*time.Millisecond)
		Is(t, err, redlock.ErrInvalid)
		masters.NotAsked(t)
		// A lock that was granted with less than its grace left would be over at once.
		masters.Behave(On(single.Acquire, Act{Before: 500 * time.Millisecond}))
		_, err = l.TryAcquire(t.Context(), Key, time.Second, redlock.Grace(500*time.Millisecond))
		IsNot(t, err, redlock.ErrInvalid)
		if err == nil {
			t.Error("granted too late to be of use")
		}
		Settle(time.Second)
	})
}

// heap returns the amount of memory in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestHazard47ContextsOfEndedParentsAreNotKept(t *testing.T) {
	Bubble(t, 1, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), time.Hour)
		first, stop := context.WithCancel(t.Context())
		defer stop()
		early := lock.Context(first)
		before, n := heap(), soak.Or(30_000, 100_000)
		for range n {
			parent, cancel := context.WithCancel(t.Context())
			lock.Context(parent)
			cancel()
		}
		for range n { // and of one that goes on
			lock.Context(t.Context())
		}
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("after %d contexts of cancelled parents the lock keeps %d MB", n, grown>>20)
		}
		Must(t, early.Err())
		late := lock.Context(t.Context())
		Must(t, lock.Release(t.Context()))
		<-early.Done()
		<-late.Done()
		Is(t, context.Cause(early), redlock.ErrNotHeld)
	})
}

// uncomparable is a context that can't be compared with another.
type uncomparable struct {
	context.Context
	_ []int
}

func TestContextsOfParentsThatCannotBeCompared(t *testing.T) {
	Bubble(t, 1, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), time.Hour)
		a, b := lock.Context(uncomparable{Context: t.Context()}), lock.Context(uncomparable{Context: t.Context()})
		Must(t, lock.Release(t.Context()))
		<-a.Done()
		<-b.Done()
	})
}
