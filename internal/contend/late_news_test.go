package contend_test

import (
	"context"
	"crypto/x509"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// MaxHold shorter than the way to the masters: Acquire returns a lock that is over.
func TestALockWhoseMaxHoldIsOverIsNotReturned(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Behave(Away(30 * time.Millisecond))
		l := masters.Locker(t, redlock.Options{})
		_, err := l.TryAcquire(t.Context(), Key, 10*time.Second, redlock.MaxHold(20*time.Millisecond))
		Is(t, err, redlock.ErrExpired)
		Settle(time.Second)
		masters.AllFree(t)
	})
}

// masters that answer with an error for one key count as an outage for the waiters of another.
func TestFaultsOfAnotherKeyDoNotCountForMaxOutage(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		for _, m := range masters {
			m.Take("somebody", 10*time.Second)
			m.Behave(func(r *single.Request) Act {
				if r.Op == single.Acquire && r.Keys[0] == "list" {
					return Act{Err: ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value")}
				}
				return Act{}
			})
		}
		w := Wait(t, t.Context(), l, Key, LongTTL, redlock.MaxOutage(3*time.Second), redlock.RetryEvery(30*time.Second))
		Settle(time.Second)
		_, err := l.TryAcquire(t.Context(), "list", LongTTL)
		t.Logf("list: %v", err)
		Settle(5 * time.Second)
		for _, m := range masters {
			if n := m.Count(single.Acquire); n > 4 {
				t.Errorf("%s was asked %d times", m.Name(), n)
			}
		}
		Settle(30 * time.Second)
		Must(t, w.Get(t).Release(t.Context()))
	})
}

// descheduled is a clock at which goroutines that are about to tell how an acquisition returned stop until they may go
// on.
type descheduled struct {
	*Clock
	goOn chan struct{}
}

func (c descheduled) Now() time.Duration {
	pcs := make([]uintptr, 4)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for f, more := frames.Next(); ; f, more = frames.Next() {
		if strings.HasSuffix(f.Function, "observeReturn") {
			<-c.goOn
		}
		if !more {
			return c.Clock.Now()
		}
	}
}

// Close returned before the last events.
func TestCloseWaitsForTheLastEvents(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		var returned atomic.Int64
		masters.Take("somebody", time.Hour)
		clock := descheduled{NewClock(), make(chan struct{})}
		l, err := redlock.New(masters.Masters(), redlock.Options{Clock: clock, Observer: func(e redlock.Event) {
			if e.Kind == redlock.EventReturned {
				returned.Add(1)
			}
		}})
		Must(t, err)
		for range 4 {
			go func() { _, _ = l.Acquire(context.Background(), Key, LongTTL) }()
		}
		go func() { _, _ = l.TryAcquire(context.Background(), Key, LongTTL) }()
		synctest.Wait() // four wait for the lock, one is about to return
		closed := make(chan error, 1)
		go func() { closed <- l.Close(context.Background()) }()
		synctest.Wait() // all five are about to return
		select {
		case err := <-closed:
			closed <- err
			t.Error("Close did not wait for the calls that are about to return")
		default:
		}
		close(clock.goOn)
		Must(t, <-closed)
		synctest.Wait()
		if n := returned.Load(); n != 5 {
			t.Errorf("5 acquisitions returned, and %d events told so", n)
		}
	})
}

func unknownAuthority(*single.Request) Act { return Act{Err: x509.UnknownAuthorityError{}} }

// A certificate was renewed a while ago. The first call since then is the probe. Until it succeeds, other calls are
// refused with the error that an earlier call met.
func TestEarlierFaultsOfMastersThatAreDownEndNoWait(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 10 * time.Second})
		masters.Behave(unknownAuthority)
		for range 5 {
			_, err := l.TryAcquire(t.Context(), Key, LongTTL)
			Is(t, err, redlock.ErrMisconfigured)
			// between two sweeps of the janitor, whose requests are probes, too
			Settle(time.Second + 30*time.Millisecond)
		}
		Settle(time.Minute + 100*time.Millisecond)
		masters.Behave(Away(time.Second))
		probe := Wait(t, t.Context(), l, Key, LongTTL)
		synctest.Wait()
		other := Wait(t, t.Context(), l, "another", LongTTL)
		Must(t, other.Get(t).Release(t.Context()))
		Must(t, probe.Get(t).Release(t.Context()))

		// An error that was met since the wait began counts, even if another call met it.
		masters.Behave(unknownAuthority)
		for range 5 {
			_, _ = l.TryAcquire(t.Context(), Key, LongTTL)
			Settle(time.Second + 30*time.Millisecond)
		}
		for _, key := range []string{Key, "another"} {
			_, err := l.Acquire(t.Context(), key, LongTTL)
			Is(t, err, redlock.ErrMisconfigured)
		}
	})
}

// An acquisition that enters a lock again is in no queue of its process. It must hear what the first of a queue hears.

// entersAgain makes such an acquisition, which asks every so often, and returns how long it took.
func entersAgain(t *testing.T, l *redlock.Locker, outer *redlock.Lock, every time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	inner, err := l.Acquire(outer.Context(t.Context()), Key, LongTTL, redlock.Shared(), redlock.RetryEvery(every))
	Must(t, err)
	took := time.Since(began)
	Must(t, inner.Release(t.Context()))
	return took
}

func TestAnAcquisitionThatEntersAgainHearsOfARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(5))
		l := masters.Locker(t, redlock.Options{})
		orphan := func(op single.Op) {
			for _, m := range masters[3:] {
				c := &single.Call{Request: &single.Request{
					Op: op, Keys: []string{Key}, Owner: "orphan", TTL: time.Hour, Reserve: 5 * time.Millisecond,
				}}
				m.Do(t.Context(), []*single.Call{c})
				Must(t, c.Err)
			}
		}
		orphan(single.Acquire)
		outer := Take(t, l, Key, LongTTL, redlock.Shared())
		masters[2].Stop() // so the two with the orphan are needed
		time.AfterFunc(5*time.Second, func() { orphan(single.Release) })
		if took := entersAgain(t, l, outer, time.Minute); took > 6*time.Second {
			t.Errorf("the key was free after 5s, and was had after %v", took)
		}
	})
}

func TestAnAcquisitionThatEntersAgainHearsThatMastersAreBack(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		outer := Take(t, l, Key, LongTTL, redlock.Shared())
		masters.Stop()
		time.AfterFunc(time.Second, masters.Start)
		if took := entersAgain(t, l, outer, time.Hour); took > 10*time.Second {
			t.Errorf("the masters were back after a second, and the lock came after %v", took)
		}
	})
}

// A writer that waits keeps new readers out. Once it has given up, they need not wait for their next attempt.
func TestAReaderHearsThatAWriterHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		locker := func() *redlock.Locker { return masters.Locker(t, redlock.Options{}) }
		Take(t, locker(), Key, LongTTL, redlock.Shared())
		writer, patience := locker(), 5*time.Second
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := writer.Acquire(ctx, Key, LongTTL, redlock.Exclusive())
			if !errors.Is(err, redlock.ErrHeld) {
				t.Errorf("the writer: %v, want ErrHeld", err)
			}
		}()
		Settle(time.Second)
		began := time.Now()
		Take(t, locker(), Key, LongTTL, redlock.Shared(), redlock.RetryEvery(time.Hour))
		if took := time.Since(began); took < patience-time.Second || took > patience {
			t.Errorf("the writer gave up after %v, and the reader got its lock %v later", patience-time.Second, took)
		}
	})
}
