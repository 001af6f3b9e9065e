package scenarios_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// The described behaviour of other locks on Redis that no other test here has.

// S1: a key never stands without its expiry, not even between two commands.
func TestSourceS1AcquireAndExpiryAreAtomic(t *testing.T) {
	server := redistest.Start(t)
	for range 20 { // the client is cut off in the middle of acquiring, again and again
		l := Dial(t, []*redistest.Server{server}, redlock.Options{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if lock, err := l.TryAcquire(t.Context(), Key, 50*time.Millisecond); err == nil {
				_ = lock.Release(t.Context())
			}
		}()
		_ = server.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err()
		if left := server.Client().TTL(t.Context(), Key).Val(); left == -1 {
			t.Fatal("the key has no expiry")
		}
		<-ended
	}
}

// S1: the clients' clocks need not agree.
func TestSourceS1ClientsClocksNeedNotAgree(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		ahead := NewClock()
		ahead.Suspend(1000 * time.Hour)
		a, b := masters.Locker(t, redlock.Options{Clock: ahead}), masters.Locker(t, redlock.Options{})
		for _, pair := range [][2]*redlock.Locker{{a, b}, {b, a}} {
			lock := Acquire(t, pair[0], 10*time.Second)
			_, err := pair[1].TryAcquire(t.Context(), Key, 10*time.Second)
			Is(t, err, redlock.ErrHeld)
			<-lock.Done()
			Settle(time.Second)
			Must(t, Acquire(t, pair[1], 10*time.Second).Release(t.Context()))
			Settle(time.Second)
		}
	})
}

// S3: an optional renewal with a maximum number of renewals, which stops on release. RedLock's five steps: the client
// reads the time. It sends the same key and value to all masters, each with a short timeout. It needs a majority
// within the validity. The validity is the ttl minus the elapsed time. After a failure it releases on all masters,
// also on those that refused.
func TestSourceS3TheFiveStepsOfRedLock(t *testing.T) {
	WithLocker(t, 5, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		for _, m := range masters[:3] {
			m.Behave(Away(30 * time.Millisecond))
		}
		began := time.Now()
		lock := Acquire(t, l, 10*time.Second)
		if took := time.Since(began); took != 30*time.Millisecond {
			t.Errorf("a majority took %v, the third fastest of five answers takes 30ms", took)
		}
		if left := lock.Remaining(); left != 9898*time.Millisecond-30*time.Millisecond {
			t.Errorf("validity %v, want the rest of it after 30ms", left)
		}
		if n := masters.Holders(lock.Owner()); n != 5 {
			t.Errorf("%d masters have the same key and value", n)
		}
		Must(t, lock.Release(t.Context()))
		Settle(time.Second)

		masters.Behave(nil)
		masters[:3].Take("other", LongTTL)
		releases := func() (all []int) {
			for _, m := range masters {
				all = append(all, m.Count(single.Release))
			}
			return all
		}
		before := releases()
		_, err := l.TryAcquire(t.Context(), Key, 10*time.Second)
		Is(t, err, redlock.ErrHeld)
		Settle(time.Second)
		for i, n := range releases() {
			if n != before[i]+1 {
				t.Errorf("%s was asked %d times to release after the failure, want once", masters[i].Name(),
					n-before[i])
			}
		}
		if n := masters.Holders("other"); n != 3 || masters.Holders("") != 3 {
			t.Errorf("the other holder has %d masters, all together %d", n, masters.Holders(""))
		}
	})
}
