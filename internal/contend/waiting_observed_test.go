package contend_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// callers counts the callers that wait, from the events of an Observer.
type callers struct {
	mu            sync.Mutex
	waiting, most int
	returned      []bool // of each call, in order, whether it waited
}

func (c *callers) observe(e redlock.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Kind == redlock.EventWaiting:
		c.waiting++
		c.most = max(c.most, c.waiting)
	case e.Kind == redlock.EventReturned && e.Waited:
		c.waiting--
		fallthrough
	case e.Kind == redlock.EventReturned:
		c.returned = append(c.returned, e.Waited)
	}
}

func (c *callers) are(t *testing.T, when string, waiting, most, returned int) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting != waiting || c.most != most || len(c.returned) != returned {
		t.Errorf("%s %d callers wait, %d at most, and %d have returned; want %d, %d and %d",
			when, c.waiting, c.most, len(c.returned), waiting, most, returned)
	}
}

// Each way out of a wait ends it for the Observer, too: the lock, a pass from a goroutine of the same process, the
// caller's context, MaxAttempts and Close.
func TestHazard125ObserversSeeWaitersBegin(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var c callers
		l := masters.Locker(t, redlock.Options{Observer: c.observe})
		ctx := t.Context()
		lock, err := l.Acquire(ctx, Key, LongTTL)
		Must(t, err)
		_, err = l.TryAcquire(ctx, Key, LongTTL)
		Is(t, err, redlock.ErrHeld)
		_, err = l.Acquire(ctx, Key, LongTTL, redlock.MaxAttempts(1))
		Is(t, err, redlock.ErrHeld)
		c.are(t, "after a lock and two single attempts", 0, 0, 3)

		var all sync.WaitGroup
		given, give := context.WithCancel(ctx)
		for range 3 {
			all.Go(func() {
				if next, err := l.Acquire(ctx, Key, LongTTL); err == nil {
					_ = next.Release(ctx)
				}
			})
		}
		all.Go(func() { _, _ = l.Acquire(given, Key, LongTTL) })
		all.Go(func() { _, _ = l.Acquire(ctx, Key, LongTTL, redlock.MaxAttempts(3), redlock.RetryEvery(time.Second)) })
		<-time.After(10 * time.Millisecond)
		c.are(t, "behind a holder", 5, 5, 3)
		give()
		<-time.After(5 * time.Second)
		c.are(t, "when one was cancelled and one has made its attempts", 3, 5, 5)
		Must(t, lock.Release(ctx))
		all.Wait()
		c.are(t, "after the release", 0, 5, 8)

		masters[:2].Behave(func(*single.Request) Act { return Act{Err: ErrSilent, After: 300 * time.Millisecond} })
		all.Go(func() { _, _ = l.Acquire(ctx, Key, LongTTL) })
		<-time.After(12 * time.Second)
		c.are(t, "in an outage", 1, 5, 8)
		closing, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = l.Close(closing)
		all.Wait()
		c.are(t, "after Close", 0, 5, 9)
		masters.Behave(nil)
		Settle(time.Minute) // what is under way
	})
}

func TestHazard113AnEventHasTheValuesOfItsCall(t *testing.T) {
	type name struct{}
	synctest.Test(t, func(t *testing.T) {
		var events []redlock.Event
		masters := redlocktest.New(t)
		l, err := redlock.New(masters.All(),
			redlock.Options{Observer: func(e redlock.Event) { events = append(events, e) }})
		Must(t, err)
		call := func(value string) context.Context { return context.WithValue(t.Context(), name{}, value) }
		first, err := l.Acquire(call("first"), "k", time.Minute)
		Must(t, err)
		Must(t, first.Extend(t.Context(), time.Minute))
		Must(t, first.Verify(t.Context()))
		ended, end := context.WithTimeout(call("late"), time.Second)
		defer end()
		_, err = l.Acquire(ended, "k", time.Minute)
		Is(t, err, context.DeadlineExceeded)
		masters[0].Stop()
		Must(t, first.Release(t.Context()))
		<-time.After(time.Minute)
		Must(t, l.Close(context.Background())) // every event was told
		seen := make(map[redlock.EventKind]any)
		for i, e := range events {
			if e.Context.Err() != nil || e.At.IsZero() || i > 0 && e.At.Before(events[i-1].At) {
				t.Errorf("%s at %v: its context is %v", e.Kind, e.At, e.Context.Err())
			}
			value := e.Context.Value(name{})
			if _, known := seen[e.Kind]; !known || value == "late" {
				seen[e.Kind] = value
			}
		}
		for kind, want := range map[redlock.EventKind]any{
			redlock.EventAcquire: "late", redlock.EventVote: "late", redlock.EventWaiting: "late",
			redlock.EventReturned: "late",
			redlock.EventExtend:   "first", redlock.EventVerify: "first", redlock.EventRelease: "late",
			redlock.EventPending: nil, redlock.EventLapsed: nil,
		} {
			if got, told := seen[kind]; !told || got != want {
				t.Errorf("%s: told %t, with %v, want %v", kind, told, got, want)
			}
		}
	})
}
