package contend_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
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

// The next two tests make a waiter the first of its queue in unusual ways. If nothing wakes it, it sleeps beside a
// free key until its context ends, and so do all behind it.

// A waiter that stepped back for a younger one moves with it to another key's queue, where it is the first by its age.
func TestAWaiterThatComesFirstByMovingAlongIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		all := masters.All()
		for i, m := range masters {
			all[i] = detour{m, func(*single.Request) time.Duration { return 17 * time.Millisecond }}
		}
		l := LockerOver(t, all, redlock.Options{})
		masters.Hold("b")
		// Its request timeout follows from its ttl and is too short, so its rounds reach no quorum.
		older := Wait(t, Within(t, time.Hour), l, "a", 300*time.Millisecond, redlock.AndKeys("b"))
		Settle(time.Millisecond)
		younger := Wait(t, Within(t, time.Hour), l, "a", LongTTL, redlock.AndKeys("b"))
		Settle(20 * time.Second)
		masters.Lose("b") // its holder has died, so no release tells anybody
		lapsed := time.Now()
		Settle(time.Minute)
		select {
		case <-younger.Ended:
			Must(t, younger.Err)
			if waited := younger.At.Sub(lapsed); waited > livenessBound {
				t.Errorf("both keys were free for %v", waited)
			}
		default:
			t.Errorf("both keys have been free for %v, and nobody asks for them", time.Since(lapsed))
		}
		Settle(2 * time.Hour)
		<-older.Ended
		<-younger.Ended
	})
}

// A waiter becomes the first while it asks out of turn. That attempt is refused, and nothing is planned after it.
func TestAWaiterThatComesFirstWhileItAsksOutOfTurnIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		all := masters.All()
		var slow atomic.Bool
		for i, m := range masters {
			all[i] = detour{m, func(r *single.Request) time.Duration {
				if slow.Load() && r.Op == single.Acquire {
					return 50 * time.Millisecond
				}
				return time.Millisecond
			}}
		}
		l := LockerOver(t, all, redlock.Options{})
		other, third := masters.Locker(t, redlock.Options{}), masters.Locker(t, redlock.Options{})
		Acquire(t, other, LongTTL, redlock.Reentrant("me"))
		ctx, cancel := context.WithCancel(t.Context())
		first := Wait(t, ctx, l, Key, LongTTL, redlock.Reentrant("somebody"))
		Settle(time.Second)
		slow.Store(true)
		second := Wait(t, Within(t, time.Hour), l, Key, LongTTL, redlock.Reentrant("me")) // "me" has the key: it asks
		Settle(5 * time.Millisecond)
		masters.Lose(Key) // that lock lapses, and a third process gets the key
		lock := Acquire(t, third, LongTTL, redlock.Reentrant("third"), redlock.AutoRenew())
		cancel()
		_ = first.Fail(t)
		slow.Store(false)
		Settle(10 * time.Second)
		Must(t, lock.Release(t.Context()))
		released := time.Now()
		Settle(2 * time.Hour)
		<-second.Ended
		Must(t, second.Err)
		if waited := second.At.Sub(released); waited > livenessBound {
			t.Errorf("the key was free for %v", waited)
		}
	})
}
