package hold_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// abandoned extends a lock for a caller that stops waiting before the masters answer.
func abandoned(t *testing.T, lose bool) *redlock.Lock {
	t.Helper()
	masters := redlocktest.New(t, redlocktest.Count(3))
	lock := Acquire(t, masters.Locker(t, redlock.Options{}), 10*time.Second)
	if lose {
		masters.Lose(Key)
	}
	masters.SlowDown(20 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	Is(t, lock.Extend(ctx, time.Minute), context.DeadlineExceeded)
	Must(t, lock.Err())
	Settle(time.Second)
	return lock
}

func TestAnExtensionWhoseCallerHasGoneStillFindsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		Is(t, abandoned(t, true).Err(), redlock.ErrNotHeld)
	})
}

func TestAnExtensionWhoseCallerHasGoneStillExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := abandoned(t, false)
		if left := lock.Remaining(); left < 50*time.Second {
			t.Errorf("the masters keep the key for a minute, and the lock has %v left", left)
		}
		Must(t, lock.Release(t.Context()))
	})
}

func TestALockIsOverOnceVerifyHasFoundItLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		Settle(time.Second) // all three have the key
		masters[0].Stop()
		masters[1].Lose(Key)
		Is(t, lock.Verify(t.Context()), redlock.ErrNoQuorum) // one has it, and one does not answer
		Must(t, lock.Err())
		masters[2].Lose(Key)
		Is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
		Is(t, lock.Err(), redlock.ErrNotHeld)
		<-lock.Done()
	})
}
