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
	servers, l := started(t, 3)
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
		give(t, inner, outer)
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
		must(t, err)
		give(t, inner)
	}
	is(t, try(t, a, key, redlock.Shared()), redlock.ErrHeld) // the control: others wait
	give(t, outer)
	give(t, writer.Get(t))
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
	tellAll(t, servers, "set", "redlock:token:{"+key+"}", uint64(1<<53-1), "ex", 3600)
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

func TestWaitersBehindOthersOfTheirProcessEndWithTheSameErrors(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		masters.Take("somebody", time.Hour)
		l := masters.Locker(t, redlock.Options{})
		ctx := within(t, time.Second)
		for _, w := range []*waiting{
			wait(t, ctx, l, key, longTTL), wait(t, ctx, l, key, longTTL), wait(t, ctx, l, key, longTTL),
		} {
			onlyIs(t, w.Fail(t), redlock.ErrHeld, context.DeadlineExceeded)
		}
	})
}
