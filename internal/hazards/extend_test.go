package hazards_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// extendedTooLate has A's lock expire unnoticed by any timer, B lock and unlock, and A extend.
func extendedTooLate(t *testing.T) (err error) {
	t.Helper()
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		asleep := NewClock()
		a := masters.Locker(t, redlock.Options{Clock: asleep})
		b := masters.Locker(t, redlock.Options{})
		lock := Acquire(t, a, 10*time.Second)
		Settle(time.Millisecond)
		asleep.Suspend(11 * time.Second) // A's machine was suspended, and no timer of A's has fired
		masters.Forget()                 // meanwhile the key has expired
		Must(t, Acquire(t, b, LongTTL).Release(t.Context()))
		err = lock.Extend(t.Context(), 10*time.Second)
		_ = lock.Release(t.Context())
		Settle(LongTTL)
	})
	return err
}

// An extension after the end of validity fails, even if all masters would grant it: another owner may have held the
// key in between.
func TestHazard17ExtendAfterExpiryFails(t *testing.T) {
	Is(t, extendedTooLate(t), redlock.ErrNotHeld)
}

// The extension is also refused locally: the masters are not even asked.
func TestHazard17ExtendAfterExpirySendsNoRequest(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), 10*time.Second)
		Settle(time.Minute)
		Is(t, lock.Extend(t.Context(), 10*time.Second), redlock.ErrNotHeld)
		Settle(time.Second)
		for _, m := range masters {
			if n := m.Count(single.Extend); n != 0 {
				t.Errorf("%s was asked %d times to extend", m.Name(), n)
			}
		}
	})
}

// extendedWith makes this many of five masters fail every extension, and reports what happens to the lock.
func extendedWith(t *testing.T, failing int, a Act) (renewals int, state, err error) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), 10*time.Second, redlock.AutoRenew())
		Settle(time.Millisecond)
		masters[:failing].Behave(On(single.Extend, a))
		err = lock.Extend(t.Context(), 10*time.Second)
		Settle(30 * time.Second) // in which it is renewed nine times
		state = lock.Err()
		renewals = masters[4].Count(single.Extend) - 1
		_ = lock.Release(t.Context())
		Settle(time.Minute)
	})
	return renewals, state, err
}

// One master's failure to extend is one vote, and releases nothing.
func TestHazard18AFailedExtensionOnOneMasterReleasesNothing(t *testing.T) {
	for _, a := range []Act{{Err: errors.New("broken")}, {Lost: true}, {Mute: true}} {
		for _, failing := range []int{1, 2} {
			renewals, state, err := extendedWith(t, failing, a)
			if err != nil || state != nil || renewals < 8 {
				t.Errorf("%d masters with %+v: extend %v, then %v after %d renewals", failing, a, err, state, renewals)
			}
		}
		// The control: a majority that fails is more than one vote.
		if _, state, err := extendedWith(t, 3, a); !errors.Is(err, redlock.ErrNoQuorum) ||
			!errors.Is(state, redlock.ErrNotHeld) {
			t.Errorf("3 masters with %+v: extend %v, then %v", a, err, state)
		}
	}
}

// boundAfter acquires and extends in rounds that take 40 ms each, and reports how much too late each bound lies.
func boundAfter(t *testing.T) (acquired, extended time.Duration) {
	t.Helper()
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Behave(Away(40 * time.Millisecond))
		l := masters.Locker(t, redlock.Options{})
		began := time.Now()
		lock := Acquire(t, l, 10*time.Second)
		acquired = lock.Until().Sub(began) - 9898*time.Millisecond
		Settle(time.Second)
		began = time.Now()
		Must(t, lock.Extend(t.Context(), 10*time.Second))
		extended = lock.Until().Sub(began) - 9898*time.Millisecond
		Must(t, lock.Release(t.Context()))
	})
	return acquired, extended
}

// The bound counts from before the first byte was sent, not from the answers.
func TestHazard19TheBoundIsCountedFromTheStartOfTheRound(t *testing.T) {
	if acquired, extended := boundAfter(t); acquired != 0 || extended != 0 {
		t.Errorf("the bounds lie %v and %v too late", acquired, extended)
	}
}

// partlyExtended lets an extension by an hour succeed on two masters of five. It reports the lock's bound after it,
// and how many masters have the key once the lock has lapsed.
func partlyExtended(t *testing.T, wrap func(*Fake) redlock.Master) (bound time.Duration, left int) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		voters := WrapEach(masters, func(_ int, m *Fake) redlock.Master { return wrap(m) })
		lock := Acquire(t, LockerOver(t, voters, redlock.Options{Clock: NewClock()}), 10*time.Second)
		Settle(time.Millisecond)
		masters[:3].Behave(On(single.Extend, Act{Err: errors.New("broken")}))
		Is(t, lock.Extend(t.Context(), time.Hour), redlock.ErrNoQuorum)
		bound = lock.Remaining()
		Must(t, lock.Err())
		<-lock.Done()
		Settle(time.Second)
		left = masters.Holders("")
	})
	return bound, left
}

// If an extension fails, a minority may still have performed it. The Locker does not count on that minority, and does
// not forget it either.
func TestHazard20PartialExtensionsAreAccountedFor(t *testing.T) {
	bound, left := partlyExtended(t, func(m *Fake) redlock.Master { return m })
	if bound > 9898*time.Millisecond || bound < 9*time.Second {
		t.Errorf("after the failed extension the lock is held for %v, want its old bound", bound)
	}
	if left != 0 {
		t.Errorf("the lock has lapsed, and %d masters keep the key for the hour of the failed extension", left)
	}
	if _, left := partlyExtended(t, func(m *Fake) redlock.Master { return forgetful{m} }); left == 0 {
		t.Error("nor do they when nothing is released: this test shows nothing")
	}
}

// A lock that is lost while it is renewed says so; the renewal ends with the lock and does not outlive its release.
func TestHazard21RenewalReportsALossAndEndsWithTheLock(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, 10*time.Second, redlock.AutoRenew())
		ctx := lock.Context(t.Context())
		Settle(25 * time.Second)
		Must(t, lock.Err())
		masters.Forget()
		masters.Take("other", time.Hour)
		<-ctx.Done()
		Is(t, context.Cause(ctx), redlock.ErrNotHeld)
		Is(t, lock.Err(), redlock.ErrNotHeld)
		Is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
		Settle(time.Second)
		before := masters.Asked()
		Settle(time.Hour / 2)
		if n := masters.Asked() - before; n != 0 || masters.Holders("other") != 3 {
			t.Errorf("%d requests after the loss, and %d masters have another's key", n, masters.Holders("other"))
		}

		masters.Forget()
		lock = Acquire(t, l, 10*time.Second, redlock.AutoRenew())
		Settle(25 * time.Second)
		Must(t, lock.Release(t.Context()))
		Settle(time.Second)
		before = masters.Asked()
		Settle(time.Hour)
		if after := masters.Asked(); after != before {
			t.Errorf("%d requests after the release", after-before)
		}
	})
}

// A holder that hangs does not keep its lock forever if MaxHold or MaxRenewals bounds it.
func TestHazard21RenewalIsBounded(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		began := time.Now()
		lock := Acquire(t, l, 10*time.Second, redlock.AutoRenew(), redlock.MaxHold(time.Minute))
		<-lock.Done()
		if held := time.Since(began); held > time.Minute || held < 59*time.Second {
			t.Errorf("MaxHold of a minute: held for %v", held)
		}
		Settle(time.Second)
		masters.AllFree(t)

		began = time.Now()
		lock = Acquire(t, l, 9*time.Second, redlock.AutoRenew(), redlock.MaxRenewals(4))
		before := masters[0].Count(single.Extend)
		<-lock.Done()
		if held, want := time.Since(began), 4*3*time.Second+8908*time.Millisecond; held > want ||
			held < want-200*time.Millisecond { // the default grace
			t.Errorf("4 renewals: held for %v, want %v", held, want)
		}
		Settle(time.Second)
		if n := masters[0].Count(single.Extend) - before; n != 4 {
			t.Errorf("the lock was renewed %d times, want 4", n)
		}
	})
}

// extendAndRelease releases a lock while an extension is on its way to one master, and returns how many keys are
// left.
func extendAndRelease(t *testing.T) (left int) {
	t.Helper()
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
		Far(t, l, masters)
		masters[4].Behave(func(r *single.Request) Act {
			if r.Repair {
				return Act{Before: 100 * time.Millisecond, After: 2 * time.Millisecond}
			}
			return Act{Before: 2 * time.Millisecond, After: 2 * time.Millisecond}
		})
		lock := Acquire(t, l, LongTTL)
		Settle(500 * time.Millisecond)
		masters[4].Forget()
		Must(t, lock.Extend(t.Context(), LongTTL)) // by the other four
		Pass(10 * time.Millisecond)                // the repair is on its way
		Must(t, lock.Release(t.Context()))
		Settle(3 * time.Second)
		left = masters.Holders("")
	})
	return left
}

// An extension, which repairs, never sets a key after its release.
func TestHazard22ExtendAndReleaseDoNotRace(t *testing.T) {
	if left := extendAndRelease(t); left != 0 {
		t.Errorf("the key is left on %d masters", left)
	}
}

// restarted makes this many of five servers lose their data, and extends.
func restarted(t *testing.T, n int) (have int, err error) {
	t.Helper()
	servers, l := Started(t, 5)
	lock := Acquire(t, l, LongTTL)
	Everywhere(t, servers, lock)
	for _, s := range servers[:n] {
		Must(t, s.RestartEmpty())
	}
	// The first use of a connection that the restart broke may fail; that is an unknown vote and worth another try.
	redistest.Eventually(t, Promptly, func() bool {
		err = lock.Extend(t.Context(), LongTTL)
		return err == nil && Holders(t, servers, lock.Owner()) == 5 || errors.Is(err, redlock.ErrNotHeld)
	}, "the extension to be decided")
	have = Holders(t, servers, lock.Owner())
	_ = lock.Release(t.Context())
	return have, err
}

// If a minority has lost the key, the next extension sets it again there. If a majority has lost the key, masters
// with a repaired key do not count as masters that have kept it.
func TestHazard23ARestartedMinorityRegainsTheKey(t *testing.T) {
	have, err := restarted(t, 2)
	if err != nil || have != 5 {
		t.Errorf("two masters restarted: %v, then %d have the key", err, have)
	}
	_, err = restarted(t, 3)
	Is(t, err, redlock.ErrNotHeld)
}

// Renewal repairs as well, so that a second failure does not find a lock that hangs by a thread.
func TestHazard23RenewalRepairsOneMasterAfterTheOther(t *testing.T) {
	Bubble(t, 5, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), 10*time.Second, redlock.AutoRenew())
		for round := range 10 {
			Settle(4 * time.Second)
			masters[round%5].Forget()
			masters[(round+1)%5].Forget()
		}
		Settle(4 * time.Second)
		Must(t, lock.Err())
		if n := masters.Holders(lock.Owner()); n != 5 {
			t.Errorf("%d masters have the key", n)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// TestARepairedKeyHasTheTTLOfTheHold: an extension by less leaves the bound where it is, and gives a lost key back for
// all of that time.
func TestARepairedKeyHasTheTTLOfTheHold(t *testing.T) {
	second := func(ttl time.Duration) (err error) {
		Bubble(t, 3, func(t *testing.T, masters Fakes) {
			lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
			Settle(time.Millisecond)
			masters[2].Forget()
			Must(t, lock.Extend(t.Context(), ttl))
			Settle(time.Millisecond)
			if n := masters.Holders(lock.Owner()); n != 3 {
				t.Fatalf("%d masters have the key", n)
			}
			Settle(20 * time.Second)
			masters[0].Forget()
			Must(t, lock.Err())
			var other *redlock.Lock
			other, err = masters.Locker(t, redlock.Options{}).TryAcquire(t.Context(), Key, LongTTL)
			if err == nil {
				Must(t, lock.Err())
				t.Logf("extended by %v: two holders, the first for another %v", ttl, lock.Remaining())
				_ = other.Release(t.Context())
			}
			_ = lock.Release(t.Context())
			Settle(LongTTL)
		})
		return err
	}
	Is(t, second(LongTTL), redlock.ErrHeld) // the control
	Is(t, second(10*time.Second), redlock.ErrHeld)
}
