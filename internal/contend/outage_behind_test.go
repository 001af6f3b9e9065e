package contend_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// Nobody holds the key while no master answers. The first waiter finds that out; those behind it never ask.
func TestInAnOutageNoWaiterSaysThatTheLockIsHeld(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		masters.Stop()
		ctx, errs := Within(t, 5*time.Second), make(chan error)
		for range 3 {
			go func() {
				_, err := l.Acquire(ctx, Key, LongTTL)
				errs <- err
			}()
		}
		for range 3 {
			err := <-errs
			Is(t, err, redlock.ErrNoQuorum)
			IsNot(t, err, redlock.ErrHeld)
		}
	})
}

// Options as long as a duration can be must not overflow: such a wait would never ask again, or end at once.
func TestAWaitWithOptionsForEverGoesOn(t *testing.T) {
	const ever = time.Duration(math.MaxInt64)
	tests := map[string]struct {
		opt   redlock.Option
		cause func(*testing.T, redlocktest.Masters)
	}{
		"behind a key that is kept": {redlock.RetryEvery(ever), func(t *testing.T, masters redlocktest.Masters) {
			lock := Acquire(t, masters.Locker(t, redlock.Options{}), 10*time.Second, redlock.MinHold(8*time.Second))
			time.AfterFunc(3*time.Second, func() { Must(t, lock.Release(t.Context())) })
		}},
		"behind a dead holder": {redlock.RetryEvery(ever), func(t *testing.T, masters redlocktest.Masters) {
			Acquire(t, masters.Locker(t, redlock.Options{}), 10*time.Second)
		}},
		"while masters complain": {redlock.MaxOutage(ever), func(_ *testing.T, masters redlocktest.Masters) {
			masters.Fail(ReplyError("WRONGPASS invalid username-password pair or user is disabled."))
			time.AfterFunc(20*time.Second, func() { masters.Fail(nil) })
		}},
		"in an outage": {redlock.MaxOutage(ever), func(_ *testing.T, masters redlocktest.Masters) {
			masters.Stop()
			time.AfterFunc(20*time.Second, masters.Start)
		}},
	}
	for name, tt := range tests {
		RunVirtual(t, name, func(t *testing.T) {
			masters := redlocktest.New(t, redlocktest.Count(3))
			tt.cause(t, masters)
			l := masters.Locker(t, redlock.Options{})
			lock, err := l.Acquire(Within(t, time.Hour), Key, 10*time.Second, tt.opt)
			Must(t, err)
			Must(t, lock.Release(t.Context()))
		})
	}
}
