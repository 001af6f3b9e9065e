package hold_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// A release waits behind an extension that is not answered, so the masters' answers to it end after it was decided.
func TestARepeatedReleaseReturnsTheSameAfterLateReplies(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		masters.Behave(func(*single.Request) Act { return Act{Lost: true} })
		Is(t, lock.Extend(Within(t, time.Millisecond), LongTTL), context.DeadlineExceeded)
		err := lock.Release(t.Context())
		OnlyIs(t, err, redlock.ErrNoQuorum)
		said := err.Error()
		Settle(5 * time.Second)
		if again := lock.Release(t.Context()); again == nil || again.Error() != said {
			t.Errorf("the second release returned %v, the first returned %v", again, said)
		}
		masters.Behave(nil)
	})
}

// The process ends before it could ask again: Close reports it, no more requests are sent, and the ttl ends the key.
func TestAReleaseThatIsNotConfirmedLapsesByItsTTLWhenTheProcessEnds(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		const ttl = 30 * time.Second
		l, other := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})
		lock := Acquire(t, l, ttl)
		extended := time.Now().Add(10 * time.Second)
		Settle(10 * time.Second)
		Must(t, lock.Extend(t.Context(), ttl))
		masters.Behave(On(single.Release, Act{Lost: true}))
		Is(t, lock.Release(t.Context()), redlock.ErrNoQuorum)
		Is(t, l.Close(Within(t, time.Second)), context.DeadlineExceeded)
		masters.Behave(nil)
		Settle(time.Until(extended.Add(ttl - time.Second)))
		_, err := other.TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrHeld)
		Settle(2 * time.Second)
		Must(t, Acquire(t, other, LongTTL).Release(t.Context()))
	})
}

// stops is a context that calls stopped when a context that descends from it needs it no more.
type stops struct {
	context.Context
	stopped func()
}

// AfterFunc makes package context call the returned function where it takes its own away.
func (s stops) AfterFunc(func()) (stop func() bool) {
	return func() bool {
		s.stopped()
		return true
	}
}

func (stops) Value(any) any { return nil }

// Release ends the contexts of the hold first and then sends its request. A second caller of Release waits for the
// result of the first, and other methods do not wait.
func TestASecondReleaseWaitsForTheFirst(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		second := make(chan error, 1)
		lock.Context(stops{t.Context(), func() {
			go func() { second <- lock.Release(t.Context()) }()
			synctest.Wait()
			Is(t, lock.Err(), redlock.ErrNotHeld)
			if n := masters.Holders(lock.Owner()); n != 3 || len(second) != 0 {
				t.Errorf("%d masters have the key, and %d releases have returned", n, len(second))
			}
		}})
		Must(t, lock.Release(t.Context()))
		Must(t, <-second)
		synctest.Wait() // a quorum was enough for them
		if n := masters.Holders(lock.Owner()); n != 0 {
			t.Errorf("%d masters have the key after the release", n)
		}
	})
}
