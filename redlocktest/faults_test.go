package redlocktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// met counts the masters on which a failed attempt got this error.
func met(tb testing.TB, err, want error) int {
	tb.Helper()
	quorum, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok {
		tb.Fatalf("got %v, want a QuorumError", err)
	}
	n := 0
	for _, node := range quorum.Nodes {
		if errors.Is(node.Err, want) {
			n++
		}
	}
	return n
}

func TestAMajorityIsEnoughAndLessIsNot(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		masters[:2].Stop()
		must(t, try(t, locker).Release(t.Context()))
		masters[2].Stop()
		masters[2].Stop()
		_, err := locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrNoQuorum)
		if n := met(t, err, redlocktest.ErrStopped); n != 3 {
			t.Errorf("%d masters were stopped, want 3: %v", n, err)
		}
		masters.Start()
		masters.Start()
		pass(time.Second)
		must(t, try(t, locker).Release(t.Context()))
	})
}

func TestAMasterKeepsItsKeysOverAStopUnlessItForgets(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		other := masters.Locker(t, redlock.Options{})
		lock := try(t, locker)
		synctest.Wait()
		masters.Stop()
		masters.Start()
		_, err := other.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrHeld)

		masters[:3].Stop()
		masters[:3].Forget()
		masters[:3].Start()
		is(t, lock.Extend(t.Context(), ttl), redlock.ErrNotHeld)
		pass(time.Second)
		must(t, try(t, other).Release(t.Context()))
	})
}

func TestARestartedMasterWaitsForItsGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3), redlocktest.RestartGuard(time.Minute))
		locker := masters.Locker(t, redlock.Options{RestartGuard: time.Minute})
		must(t, try(t, locker).Release(t.Context()))
		masters[:2].Stop()
		masters[:2].Forget()
		masters[:2].Start()
		_, err := locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrNoQuorum)
		if guard, ok := errors.AsType[*single.GuardError](nodeErr(err)); !ok || guard.Remaining != time.Minute {
			t.Errorf("%v, want the guard", err)
		}
		pass(time.Minute)
		must(t, try(t, locker).Release(t.Context()))
	})
}

// nodeErr is the first master's error.
func nodeErr(err error) error {
	if quorum, ok := errors.AsType[*redlock.QuorumError](err); ok {
		for _, node := range quorum.Nodes {
			if node.Err != nil {
				return node.Err
			}
		}
	}
	return nil
}

// Slow masters serve the requests after the caller has stopped waiting; the Locker then undoes them.
func TestSlowMastersAreTooLateAndNothingIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		must(t, try(t, locker).Release(t.Context())) // makes the connections
		masters[:3].SlowDown(3 * time.Second)
		_, err := locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrNoQuorum)
		pass(1400 * time.Millisecond) // the request timeout is half a second
		if held := masters[:3].Held(); held == nil {
			t.Error("the requests have not arrived, so this test proves nothing")
		}
		masters.SlowDown(0)
		pass(2 * time.Second)
		if held := masters[:1].Held(); held != nil {
			t.Errorf("%q is left", held)
		}
		masters.SlowDown(100 * time.Millisecond)
		began := time.Now()
		lock := try(t, locker)
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v, want the masters' delay", took)
		}
		must(t, lock.Release(t.Context()))
	})
}

func TestAStopBreaksOffRequestsAndSubscriptions(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		masters.SlowDown(200 * time.Millisecond)
		began := time.Now()
		time.AfterFunc(50*time.Millisecond, masters.Stop) // on the way there
		_, err := locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrNoQuorum)
		if met(t, err, redlocktest.ErrStopped) < 3 || time.Since(began) != 50*time.Millisecond {
			t.Errorf("after %v: %v, want that they were stopped after 50ms", time.Since(began), err)
		}
		masters.Start()
		pass(70 * time.Millisecond) // before anything that was sent since then can arrive
		if held := masters.Held(); held != nil {
			t.Errorf("%q landed on masters that were stopped before", held)
		}
	})
}

func TestMastersFailAsRequested(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		broken := errors.New("network is unreachable")
		masters.FailNext(broken)
		_, err := locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrNoQuorum)
		if met(t, err, broken) < 3 {
			t.Errorf("%v, want %v", err, broken)
		}
		lock := try(t, locker)
		masters[:2].FailNext(broken)
		must(t, lock.Release(t.Context()))
		must(t, try(t, locker).Release(t.Context())) // two of five don't matter
		pass(time.Second)

		masters.FailNext(broken)
		lock, err = locker.Acquire(t.Context(), key, ttl) // tries again
		must(t, err)
		masters.Fail(broken)
		is(t, lock.Extend(t.Context(), ttl), redlock.ErrNoQuorum)
		masters.Fail(nil)
		pass(time.Second) // the Locker probes masters that were silent several times
		must(t, lock.Extend(t.Context(), ttl))
		must(t, lock.Release(t.Context()))
		pass(time.Second) // every master has answered

		reply := redlocktest.ReplyError("NOPERM this user has no permissions to run the 'set' command")
		masters.FailNext(reply)
		_, err = locker.TryAcquire(t.Context(), key, ttl)
		is(t, err, redlock.ErrMisconfigured)
		if asRedis, ok := errors.AsType[redis.Error](nodeErr(err)); !ok || asRedis.Error() != string(reply) {
			t.Errorf("%v, want %v as a server's", err, reply)
		}
	})
}

func TestAStepOfClocksVoidsTheLockAndTokensStillOrder(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		first := try(t, locker, redlock.Fenced())
		synctest.Wait() // its acquisition was decided by three
		for _, m := range masters[:3] {
			m.StepClock(time.Minute)
		}
		second := try(t, masters.Locker(t, redlock.Options{}), redlock.Fenced())
		if first.Err() != nil || second.Token() <= first.Token() {
			t.Errorf("%v, tokens %d and %d; want two holders in order", first.Err(), first.Token(), second.Token())
		}
		is(t, first.Verify(t.Context()), redlock.ErrNotHeld)
	})
}

func TestALostLockEndsAtTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, masters redlocktest.Masters, locker *redlock.Locker) {
		lock := try(t, locker, redlock.AutoRenew())
		kept, err := locker.TryAcquire(t.Context(), "another", ttl, redlock.AutoRenew())
		must(t, err)
		pass(time.Minute)
		must(t, lock.Err())
		masters.Lose(key)
		began := time.Now()
		<-lock.Done()
		if after := time.Since(began); after > ttl/3 {
			t.Errorf("the loss was reported after %v, want at most a third of %v", after, ttl)
		}
		is(t, lock.Err(), redlock.ErrNotHeld)
		must(t, kept.Err()) // the control
		must(t, kept.Release(t.Context()))
	})
}

// Outside a bubble Advance does the work of time.Sleep in a bubble.
func TestAdvanceMovesTimeOn(t *testing.T) {
	masters := redlocktest.New(t)
	locker := masters.Locker(t, redlock.Options{})
	renewed := try(t, locker, redlock.AutoRenew())
	for range 10 { // a minute
		masters.Advance(6 * time.Second)
		redistest.Eventually(t, time.Minute, func() bool { return renewed.Remaining() > 9*time.Second }, "a renewal")
		must(t, renewed.Err())
	}
	masters.Lose(key)
	masters.Advance(ttl / 3)
	redistest.Eventually(t, time.Minute, func() bool { return locktest.Over(renewed) }, "the lock to be lost")

	lapses := try(t, locker)
	began := masters.Clock().Now()
	masters.Advance(ttl)
	is(t, lapses.Err(), redlock.ErrNotHeld)
	if passed := masters.Clock().Now() - began; passed < ttl {
		t.Errorf("%v have passed, want %v", passed, ttl)
	}
	redistest.Eventually(t, time.Minute, func() bool { return masters.Held() == nil }, "the keys to expire")
	must(t, try(t, masters.Locker(t, redlock.Options{})).Release(t.Context()))
}

func TestAdvanceFiresDueTimers(t *testing.T) {
	masters := redlocktest.New(t)
	clock, fired := masters.Clock(), make(chan string, 4)
	clock.AfterFunc(time.Hour, func() { fired <- "due" })
	clock.AfterFunc(3*time.Hour, func() { fired <- "not due" })
	if !clock.AfterFunc(time.Hour, func() { fired <- "stopped" }).Stop() {
		t.Error("it was not stopped")
	}
	again := clock.AfterFunc(0, func() { fired <- "again" })
	if got := <-fired; got != "again" || again.Reset(time.Hour) || again.Stop() == false || again.Stop() {
		t.Errorf("%q, and whether it was set is not told right", got)
	}
	masters.Advance(time.Hour)
	if got := <-fired; got != "due" {
		t.Errorf("fired is what is %s", got)
	}
	masters.Advance(time.Hour)
	if len(fired) > 0 {
		t.Errorf("fired is what is %s", <-fired)
	}
	masters.Advance(time.Hour)
	if got := <-fired; got != "not due" {
		t.Errorf("fired is what was %s", got)
	}
}
