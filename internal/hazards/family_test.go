package hazards_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// An owner that enters its lock again must not queue behind the waiters for that very lock: both would wait forever.
func TestAReentrantAcquireOvertakesWaitersOfItsLock(t *testing.T) {
	servers, l := Started(t, 3)
	for name, test := range map[string]struct{ outer, inner, waits redlock.Option }{
		"reentrant": {redlock.Reentrant("job"), redlock.AndKeys(Key), redlock.AndKeys(Key)},
		"by owner":  {redlock.Reentrant("job"), redlock.Reentrant("job"), redlock.Reentrant("other")},
		"exclusive": {redlock.Exclusive(), redlock.Exclusive(), redlock.Shared()},
		"shared":    {redlock.Shared(), redlock.Shared(), redlock.Exclusive()},
	} {
		outer := Take(t, l, Key, LongTTL, test.outer)
		Everywhere(t, servers, outer)
		behind := Wait(t, t.Context(), l, Key, LongTTL, test.waits)
		AwaitQueue(t, servers, Key, 1)
		ctx := outer.Context(Soon(t))
		if name == "by owner" {
			ctx = Soon(t) // by nothing but the name
		}
		inner, err := l.Acquire(ctx, Key, LongTTL, test.inner)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		Give(t, inner, outer)
		Give(t, behind.Get(t))
		Nowhere(t, servers, Key)
	}
}

// A writer that waits keeps new readers out. A reader that is inside may enter again, because the writer waits for
// that reader.
func TestAReaderCanReadAgainWhileAWriterWaits(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	outer := Take(t, a, Key, LongTTL, redlock.Shared())
	Everywhere(t, servers, outer)
	writer := Wait(t, t.Context(), b, Key, LongTTL, redlock.Exclusive())
	AwaitQueue(t, servers, Key, 1)
	for range 20 {
		inner, err := a.Acquire(outer.Context(Soon(t)), Key, LongTTL, redlock.Shared())
		Must(t, err)
		Give(t, inner)
	}
	Is(t, Try(t, a, Key, redlock.Shared()), redlock.ErrHeld) // the control: others wait
	Give(t, outer)
	Give(t, writer.Get(t))
}

// Tokens end at 2^53: a clock set to a far future must not use them up, for its key or any other.
func TestAClockOfAnotherMillenniumDoesNotUseUpTokens(t *testing.T) {
	servers := redistest.StartN(t, 3)
	sane, sane2 := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	for _, wall := range []time.Time{
		time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.UnixMicro(math.MaxInt64), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		mad := Dial(t, servers, redlock.Options{Clock: Dated(func() time.Time { return wall })})
		var last uint64
		for _, l := range []*redlock.Locker{mad, sane, mad, sane2} {
			for _, name := range []string{Key, "other"} {
				lock := Take(t, l, name, LongTTL, redlock.Fenced())
				if name == Key {
					if lock.Token() <= last {
						t.Errorf("in %d: token %d after %d", wall.Year(), lock.Token(), last)
					}
					last = lock.Token()
				}
				Give(t, lock)
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
	l, l2 := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	TellAll(t, servers, "set", "redlock:token:{"+Key+"}", uint64(1<<53-1), "ex", 3600)
	for range 3 {
		if err := Try(t, l, Key, redlock.Fenced()); err == nil {
			t.Error("a token above the greatest was given out")
		}
		Must(t, Try(t, l, "other", redlock.Fenced()))
		Must(t, Try(t, l2, "other", redlock.Fenced()))
	}
	Nowhere(t, servers, Key)
	Must(t, Try(t, l, Key)) // as a plain lock it still works
}

func TestWaitersBehindOthersOfTheirProcessEndWithTheSameErrors(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		masters.Take("somebody", time.Hour)
		l := masters.Locker(t, redlock.Options{})
		ctx := Within(t, time.Second)
		for _, w := range []*Waiting{
			Wait(t, ctx, l, Key, LongTTL), Wait(t, ctx, l, Key, LongTTL), Wait(t, ctx, l, Key, LongTTL),
		} {
			OnlyIs(t, w.Fail(t), redlock.ErrHeld, context.DeadlineExceeded)
		}
	})
}
