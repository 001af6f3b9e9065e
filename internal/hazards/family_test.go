package hazards_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// An owner that enters its lock again must not queue behind the waiters for that very lock: both would wait forever.
func TestAReentrantAcquireOvertakesWaitersOfItsLock(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := dial(t, servers, redlock.Options{})
	for name, test := range map[string]struct{ outer, inner, waits redlock.Option }{
		"reentrant": {redlock.Reentrant("job"), redlock.AndKeys(key), redlock.AndKeys(key)},
		"by owner":  {redlock.Reentrant("job"), redlock.Reentrant("job"), redlock.Reentrant("other")},
		"exclusive": {redlock.Exclusive(), redlock.Exclusive(), redlock.Shared()},
		"shared":    {redlock.Shared(), redlock.Shared(), redlock.Exclusive()},
	} {
		outer := take(t, l, key, longTTL, test.outer)
		everywhere(t, servers, outer)
		behind := wait(t, t.Context(), l, key, longTTL, test.waits)
		awaitQueue(t, servers, key, 1)
		ctx := outer.Context(soon(t))
		if name == "by owner" {
			ctx = soon(t) // by nothing but the name
		}
		inner, err := l.Acquire(ctx, key, longTTL, test.inner)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		give(t, inner)
		give(t, outer)
		give(t, behind.Get(t))
		nowhere(t, servers, key)
	}
}

// A writer that waits keeps new readers out. A reader that is inside may enter again, because the writer waits for
// that reader.
func TestAReaderCanReadAgainWhileAWriterWaits(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	outer := take(t, a, key, longTTL, redlock.Shared())
	everywhere(t, servers, outer)
	writer := wait(t, t.Context(), b, key, longTTL, redlock.Exclusive())
	awaitQueue(t, servers, key, 1)
	for range 20 {
		inner, err := a.Acquire(outer.Context(soon(t)), key, longTTL, redlock.Shared())
		if err != nil {
			t.Fatalf("the inner reader: %v", err)
		}
		give(t, inner)
	}
	is(t, try(t, a, key, redlock.Shared()), redlock.ErrHeld) // the control: others wait
	give(t, outer)
	give(t, writer.Get(t))
}

// Hazard 32: where the holder lacks a master, each attempt is granted that one. That is no split vote.
func TestHazard32AWaiterThatIsGrantedAMinorityDoesNotSpin(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, longTTL)
	everywhere(t, servers, held)
	must(t, servers[0].Client().Del(t.Context(), key).Err())
	const span = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	is(t, wait(t, ctx, b, key, longTTL).Fail(t), redlock.ErrHeld)
	n := calls(t, servers[1:2], "zadd") // one of those that refuse
	t.Logf("%d attempts in %v", n, span)
	if n < 2 || n > 50 {
		t.Errorf("%d attempts in %v, want about 10 a second at most", n, span)
	}
	must(t, held.Verify(t.Context()))
	give(t, held)
}

// Tokens end at 2^53: a clock set to a far future must not use them up, for its key or any other.
func TestAClockOfAnotherMillenniumDoesNotUseUpTokens(t *testing.T) {
	servers := redistest.StartN(t, 3)
	sane, sane2 := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	for _, wall := range []time.Time{
		time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.UnixMicro(math.MaxInt64), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		mad := dial(t, servers, redlock.Options{Clock: dated(func() time.Time { return wall })})
		var last uint64
		for _, l := range []*redlock.Locker{mad, sane, mad, sane2} {
			for _, name := range []string{key, "other"} {
				lock := take(t, l, name, longTTL, redlock.Fenced())
				if name == key {
					if lock.Token() <= last {
						t.Errorf("in %d: token %d after %d", wall.Year(), lock.Token(), last)
					}
					last = lock.Token()
				}
				give(t, lock)
			}
		}
		if latest := uint64(time.Now().Add(24 * time.Hour).UnixMicro()); last > latest {
			t.Errorf("in %d: the token is %d, far ahead of the time", wall.Year(), last)
		}
	}
}

// A counter at its end fails its own key, and no other.
func TestACounterThatIsUsedUpFailsOnlyItsKey(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l, l2 := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	for _, s := range servers {
		must(t, s.Client().Set(t.Context(), "redlock:token:{"+key+"}", uint64(1<<53-1), time.Hour).Err())
	}
	for range 3 {
		if err := try(t, l, key, redlock.Fenced()); err == nil {
			t.Error("a token above the greatest was given out")
		}
		must(t, try(t, l, "other", redlock.Fenced()))
		must(t, try(t, l2, "other", redlock.Fenced()))
	}
	nowhere(t, servers, key)
	must(t, try(t, l, key)) // as a plain lock it still works
}

func TestAWaiterForSeveralKeysIsNotifiedForEachKey(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	for name, l := range map[string]*redlock.Locker{"the same Locker": a, "another Locker": b} {
		var gaps time.Duration
		const n = 10
		for range n {
			held := take(t, a, "c", longTTL)
			w := wait(t, t.Context(), l, "a", longTTL, redlock.AndKeys("b", "c"))
			awaitQueue(t, servers, "c", 1)
			awaitEars(t, servers, 1)
			began := time.Now()
			give(t, held)
			lock := w.Get(t)
			gaps += w.At.Sub(began)
			give(t, lock)
		}
		if mean := gaps / n; mean > 40*time.Millisecond {
			t.Errorf("%s: the waiter came %v after the release of its last key, in the mean", name, mean)
		} else {
			t.Logf("%s: %v in the mean", name, mean)
		}
		if name == "the same Locker" {
			awaitEars(t, servers, 0)
		}
	}
}

// A waiter leaves the masters' queues when its context ends, so that no release notifies it.
func TestACancelledWaiterIsNotNotified(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, gone, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{}),
		dial(t, servers, redlock.Options{})
	for name, opt := range map[string]redlock.Option{"plain": redlock.AndKeys(key), "exclusive": redlock.Exclusive()} {
		var gaps time.Duration
		const n = 10
		for range n {
			held := take(t, a, key, longTTL, opt)
			ctx, cancel := context.WithCancel(t.Context())
			first := wait(t, ctx, gone, key, longTTL, opt)
			awaitQueue(t, servers, key, 1)
			second := wait(t, t.Context(), b, key, longTTL, opt)
			awaitQueue(t, servers, key, 2)
			awaitEars(t, servers, 2)
			cancel()
			is(t, first.Fail(t), context.Canceled)
			for _, s := range servers {
				redistest.Eventually(t, promptly, func() bool { return queued(t, s, key) <= 1 },
					"the one that gave up to leave the queue")
			}
			began := time.Now()
			give(t, held)
			lock := second.Get(t)
			gaps += second.At.Sub(began)
			give(t, lock)
		}
		if mean := gaps / n; mean > 40*time.Millisecond {
			t.Errorf("%s: the next waiter came %v after the release, in the mean", name, mean)
		} else {
			t.Logf("%s: %v in the mean", name, mean)
		}
	}
}

func TestWaitersBehindOthersOfTheirProcessEndWithTheSameErrors(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		for _, m := range masters {
			m.Take("somebody", time.Hour)
		}
		l := masters.Locker(t, redlock.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, w := range []*waiting{
			wait(t, ctx, l, key, longTTL), wait(t, ctx, l, key, longTTL), wait(t, ctx, l, key, longTTL),
		} {
			err := w.Fail(t)
			is(t, err, redlock.ErrHeld)
			is(t, err, context.DeadlineExceeded)
		}
	})
}
