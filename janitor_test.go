package redlock_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/janitor"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// pending fails the test unless so many releases are pending.
func pending(t *testing.T, l *redlock.Locker, want int) {
	t.Helper()
	if n := l.Pending(); n != want {
		t.Errorf("%d releases are pending, want %d", n, want)
	}
}

// A master does not answer an acquisition and loses releases. Its orphan is gone soon after it answers again: within
// two intervals, and the request that is under way.
func TestAnOrphanLivesForAtMostTwoIntervals(t *testing.T) {
	for _, unanswered := range []bool{true, false} {
		Bubble(t, 3, func(t *testing.T, masters Fakes) {
			const timeout = 50 * time.Millisecond
			l := masters.Locker(t, redlock.Options{RequestTimeout: timeout})
			masters[2].Behave(func(r *single.Request) Act {
				return Act{Mute: unanswered && r.Op == single.Acquire, Lost: r.Op == single.Release}
			})
			Must(t, Acquire(t, l, time.Hour).Release(t.Context()))
			Settle(10 * time.Minute)
			if masters[2].Holder() == "" || l.Pending() != 1 {
				t.Fatalf("no orphan, %d pending releases: this test shows nothing", l.Pending())
			}
			masters[2].Behave(nil)
			Settle(2*janitor.Interval + timeout)
			masters[2:].AllFree(t)
			Settle(2 * janitor.Interval)
			pending(t, l, 0)
		})
	}
}

// An acquire that timed out may be read by its master after a release from another connection was. So one confirmed
// release is not the end of it.
func TestAnAcquireThatLandsAfterItsReleaseIsReleasedAgain(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 50 * time.Millisecond})
		var running atomic.Bool
		masters[2].Behave(func(r *single.Request) Act {
			switch {
			case r.Op == single.Acquire:
				return Act{Before: 10*time.Second + 100*time.Millisecond} // after the first release that is confirmed
			case !running.Load():
				return Act{Lost: true}
			}
			return Act{}
		})
		Must(t, Acquire(t, l, time.Hour).Release(t.Context()))
		Settle(10*time.Second - time.Millisecond)
		running.Store(true)
		Settle(time.Second)
		masters[2:].AllFree(t)
		pending(t, l, 0)
	})
}

// Requests that a stopped master has yet to read may set the key for longer than the ttl of the acquisition. The
// janitor keeps looking for the key that long.
func TestTheJanitorLooksForALateRepairForTheTTLOfTheRepair(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, time.Second)
		Settle(time.Millisecond)
		masters[2].Forget()
		const lands, cutOff = 2 * time.Hour, 10 * time.Second
		began, answered := time.Now(), 0
		masters[2].Behave(func(r *single.Request) Act {
			switch at := time.Since(began); {
			case r.Repair:
				return Act{Before: lands}
			case r.Op != single.Release:
			case at < lands-cutOff || answered == 1 && at < lands+cutOff: // for longer than the lock was acquired for
				return Act{Lost: true}
			default:
				answered++
			}
			return Act{}
		})
		Must(t, lock.Extend(t.Context(), time.Hour))
		Must(t, lock.Release(t.Context()))
		Settle(lands + 2*cutOff)
		masters[2:].AllFree(t)
	})
}

func TestPendingReleasesLapseWithTheTTL(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, 10*time.Second)
		Settle(time.Millisecond)
		masters[2].Behave(On(single.Release, Act{Err: errors.New("broken")}))
		Must(t, lock.Release(t.Context()))
		Settle(9 * time.Second)
		pending(t, l, 1)
		Settle(2 * time.Second)
		pending(t, l, 0)
		before := masters.Asked()
		Settle(time.Hour)
		if n := masters.Asked() - before; n != 0 {
			t.Errorf("asked %d times about a key that has lapsed", n)
		}
	})
}

// If a master is down, the janitor sends it one pending release an interval, not all of the pending releases.
func TestAMasterThatIsDownIsNotFloodedWithPendingReleases(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		masters[2].Behave(On(single.Release, Act{Err: errors.New("broken")}))
		for i := range 100 {
			lock, err := l.TryAcquire(t.Context(), strconv.Itoa(i), 100*time.Hour)
			Must(t, err)
			Must(t, lock.Release(t.Context()))
			Pass(time.Microsecond)
		}
		masters[2].Behave(func(*single.Request) Act { return Act{Lost: true} })
		Settle(time.Minute)
		before := masters[2].Count(single.Release)
		Settle(time.Minute)
		if n, most := masters[2].Count(single.Release)-before, int(time.Minute/janitor.Interval); n > most || n == 0 {
			t.Errorf("asked %d times in a minute, want at most %d", n, most)
		}
		masters[2].Behave(nil)
		Settle(5 * time.Second)
		pending(t, l, 0)
	})
}

func TestCloseDrainsTheJanitor(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, time.Hour)
		Settle(time.Millisecond)
		masters[2].Behave(On(single.Release, Act{Err: errors.New("broken")}))
		Must(t, lock.Release(t.Context()))
		time.AfterFunc(time.Minute, func() { masters[2].Behave(nil) })
		began := time.Now()
		Must(t, l.Close(Within(t, time.Hour)))
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*janitor.Interval {
			t.Errorf("Close took %v, the master was back after a minute", took)
		}
		masters.AllFree(t)
	})
}

// The janitor handles the greatest ttl without an overflow: the release does not count as lapsed.
func TestPendingReleasesOfTheGreatestTTLDoNotLapse(t *testing.T) {
	WithLocker(t, 3, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		const longest = time.Duration(math.MaxInt64) // 292 years
		lock := Acquire(t, l, longest)
		if left := lock.Remaining(); left < longest/2 {
			t.Errorf("held for %v", left)
		}
		Settle(time.Millisecond)
		masters[2].Behave(On(single.Release, Act{Err: errors.New("broken")}))
		Must(t, lock.Release(t.Context()))
		Settle(time.Minute)
		masters[2].Behave(nil)
		Settle(time.Minute)
		masters[2:].AllFree(t)
	})
}

// While a master counts as down, one request at a time asks whether it is back. If that is an acquisition, its own
// release comes while it is under way, and must not be turned away for that: the answer may be a grant.
func TestTheReleaseOfAnAttemptIsSentToAMasterThatCountsAsDown(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, fakes Fakes) {
		away := true
		masters := WrapEach(fakes, func(i int, m *Fake) redlock.Master {
			return Cut(m, func(*single.Request) bool { return i > 0 || away })
		})
		l, err := redlock.New(masters, redlock.Options{Clock: NewClock(), RequestTimeout: 100 * time.Millisecond})
		Must(t, err)
		for range 5 { // until all count as down
			_, err := l.TryAcquire(t.Context(), Key, LongTTL)
			Is(t, err, redlock.ErrNoQuorum)
			Settle(50 * time.Millisecond)
		}
		// The first is back, and slow: the round is decided by the other two long before it grants.
		away = false
		fakes[0].Behave(On(single.Acquire, Act{Before: 50 * time.Millisecond}))
		_, err = l.TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrNoQuorum)
		Settle(49 * time.Millisecond)
		if fakes[0].Count(single.Acquire) != 1 || fakes[0].Count(single.Release) != 0 {
			t.Error("the acquisition is not the probe: this test shows nothing")
		}
		Settle(time.Second)
		if holder := fakes[0].Holder(); holder != "" {
			t.Errorf("an orphan is left, and the janitor has %d pending releases", l.Pending())
		}
		Must(t, l.Close(context.Background()))
	})
}

// On a master, a release follows the acquisition's earlier requests, and its request timeout begins then. Otherwise a
// slow master could use up most of the timeout with the acquisition. Then each release there would be left to the
// janitor, and the key would stay until then.
func TestAReleaseBehindASlowAcquisitionHasATimeoutOfItsOwn(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		l := masters.Locker(t, redlock.Options{RequestTimeout: 100 * time.Millisecond})
		masters[2].Behave(Away(95 * time.Millisecond))
		Must(t, Acquire(t, l, LongTTL).Release(t.Context())) // now it is known to be far away
		Settle(time.Second)
		masters[2].Behave(func(r *single.Request) Act {
			if r.Op == single.Acquire {
				return Act{Before: 120 * time.Millisecond}
			}
			return Act{After: 20 * time.Millisecond}
		})
		lock := Acquire(t, l, LongTTL)
		Must(t, lock.Release(t.Context()))
		Settle(150 * time.Millisecond)
		if l.Pending() != 0 || masters.Holders("") != 0 {
			t.Errorf("%d releases are pending, %d masters have the key", l.Pending(), masters.Holders(""))
		}
		Settle(time.Second)
		if n := masters[2].Count(single.Release); n != 2 {
			t.Errorf("the slow master got %d releases, want one for each of two locks", n)
		}
	})
}
