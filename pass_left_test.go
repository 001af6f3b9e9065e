package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
)

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
		silent := masters.All()
		for i, m := range masters {
			silent[i] = hardOfHearing{m} // so that it asks often
		}
		l, err := redlock.New(silent, redlock.Options{Clock: masters.Clock()})
		must(t, err)
		closesAtLast(t, l)
		other, third := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})

		masters.Hold(key)
		first := wait(t, t.Context(), l, key, passTTL, redlock.Fenced())
		synctest.Wait()
		// which is not patient
		second := wait(t, t.Context(), l, key, passTTL, redlock.Fenced(), redlock.MaxAttempts(1000))
		settle(time.Second)
		last := wait(t, t.Context(), third, key, longTTL, redlock.RetryEvery(time.Hour))
		settle(time.Second)
		masters.Release(key)
		lock := first.get(t)
		pass(70 * time.Millisecond) // it asks, and is refused
		must(t, lock.Release(t.Context()))
		passed := second.get(t)
		if passed.Owner() != lock.Owner() {
			t.Fatal("not passed on: this shows nothing")
		}

		h, err := passed.Handover()
		must(t, err)
		attached, err := other.Attach(t.Context(), sent(t, h), passTTL)
		must(t, err)
		settle(time.Second)
		released := time.Now()
		must(t, attached.Release(t.Context()))
		comesAtOnce(t, last, released)
	})
}
