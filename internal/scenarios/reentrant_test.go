package scenarios_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

func TestS2ThreeAcquiresNeedThreeReleases(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	const owner = "job-17"
	// The Lockers differ: the identity of the owner does not depend on the process.
	holds := []*redlock.Lock{
		Take(t, a, Key, LongTTL, redlock.Reentrant(owner)), Take(t, b, Key, LongTTL, redlock.Reentrant(owner)),
		Take(t, a, Key, LongTTL, redlock.Reentrant(owner)),
	}
	other := Dial(t, servers, redlock.Options{})
	for i, hold := range holds {
		if hold.Owner() != owner {
			t.Errorf("hold %d is of %q", i, hold.Owner())
		}
		Is(t, Try(t, other, Key, redlock.Reentrant("job-1")), redlock.ErrHeld)
		Is(t, Try(t, other, Key), redlock.ErrHeld)
		redistest.Eventually(t, Promptly, func() bool { return HolderOf(t, other, Key).Holds == len(holds)-i },
			"the holds to be counted")
		Give(t, hold)
	}
	Must(t, Try(t, other, Key, redlock.Reentrant("job-1")))
}

func TestAnAcquireUnderTheLocksContextIsReentrant(t *testing.T) {
	_, l := Started(t, 3)
	for name, opt := range map[string]redlock.Option{
		"reentrant": redlock.Reentrant("me"), "exclusive": redlock.Exclusive(),
	} {
		outer := Take(t, l, Key, LongTTL, opt)
		type private struct{}
		ctx := context.WithValue(outer.Context(t.Context()), private{}, 1) // as handed down by others
		inner, err := l.TryAcquire(ctx, Key, LongTTL)
		Must(t, err)
		if inner.Owner() != outer.Owner() {
			t.Errorf("%s: the inner hold is of another owner", name)
		}
		innermost, err := l.Acquire(inner.Context(ctx), Key, LongTTL, opt)
		Must(t, err)
		Give(t, innermost, inner)
		Must(t, outer.Verify(t.Context()))
		Is(t, Try(t, l, Key, redlock.Reentrant("somebody else")), redlock.ErrHeld)
		Give(t, outer)
	}
}

func TestAnAcquireUnderALockOfAnotherKeyIsOrdinary(t *testing.T) {
	_, l := Started(t, 3)
	outer := Take(t, l, "other", LongTTL, redlock.Reentrant("me"))
	lock, err := l.TryAcquire(outer.Context(t.Context()), Key, LongTTL)
	Must(t, err)
	if lock.Owner() == outer.Owner() {
		t.Error("the lock of one key became the owner of another")
	}
	// Two locks down, the outermost is still found.
	again, err := l.TryAcquire(lock.Context(outer.Context(t.Context())), "other", LongTTL)
	Must(t, err)
	Give(t, again, lock, outer)
}

// SOURCES S1: locking twice is a separate error, not an endless wait.
func TestALockThatIsNotReentrantSaysSo(t *testing.T) {
	servers, l := Started(t, 3)
	for name, test := range map[string]struct{ outer, inner []redlock.Option }{
		"plain, again":       {nil, nil},
		"fenced, again":      {[]redlock.Option{redlock.Fenced()}, []redlock.Option{redlock.Fenced()}},
		"plain, by an owner": {nil, []redlock.Option{redlock.Reentrant("me")}},
		"reentrant, by another": {
			[]redlock.Option{redlock.Reentrant("me")}, []redlock.Option{redlock.Reentrant("you")},
		},
		"a reader that writes": {[]redlock.Option{redlock.Shared()}, []redlock.Option{redlock.Exclusive()}},
		"a writer that reads":  {[]redlock.Option{redlock.Exclusive()}, []redlock.Option{redlock.Shared()}},
		"a reader, plain":      {[]redlock.Option{redlock.Shared()}, nil},
		"reentrant, fenced":    {[]redlock.Option{redlock.Reentrant("me")}, []redlock.Option{redlock.Fenced()}},
		"reentrant, with more": {[]redlock.Option{redlock.Reentrant("me")}, []redlock.Option{redlock.AndKeys("more")}},
		"one of several":       {[]redlock.Option{redlock.AndKeys("more")}, nil},
	} {
		outer := Take(t, l, Key, LongTTL, test.outer...)
		ctx := outer.Context(t.Context())
		Everywhere(t, servers, outer)
		before := Settled(t, servers)
		_, err := l.Acquire(ctx, Key, LongTTL, test.inner...)
		if !errors.Is(err, redlock.ErrAlreadyHeld) || errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%s: %v, want ErrAlreadyHeld", name, err)
		}
		if after := Settled(t, servers); after != before {
			t.Errorf("%s: %d commands were sent", name, after-before)
		}
		Give(t, outer)
		// A lock that is over is no lock to wait for.
		lock, err := l.Acquire(context.WithoutCancel(ctx), Key, LongTTL, redlock.MaxAttempts(20))
		if err != nil {
			t.Errorf("%s: after the release: %v", name, err)
			continue
		}
		Give(t, lock)
		Nowhere(t, servers, Key)
	}
}

// Hazard 29: where holds are counted, a release that is sent twice frees a lock that is still held.
func TestHazard29ARepeatedReleaseDoesNotFree(t *testing.T) {
	_, l := Started(t, 3)
	first, second := Take(t, l, Key, LongTTL, redlock.Reentrant("me")),
		Take(t, l, Key, LongTTL, redlock.Reentrant("me"))
	for range 3 {
		Must(t, first.Release(t.Context()))
	}
	Must(t, second.Verify(t.Context()))
	if n := HolderOf(t, l, Key).Holds; n != 1 {
		t.Errorf("%d holds are left, want one", n)
	}
	Is(t, Try(t, l, Key, redlock.Reentrant("other")), redlock.ErrHeld)
	Give(t, second)
}

// SOURCES S2: the reentrant lock is renewed while it is held, by every hold for itself.
func TestS2ReentrantHoldsAreRenewed(t *testing.T) {
	InMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		renewed := Acquire(t, l, LongTTL, redlock.Reentrant("me"), redlock.AutoRenew())
		lapsing := Acquire(t, l, LongTTL, redlock.Reentrant("me"))
		<-lapsing.Done()
		Is(t, lapsing.Err(), redlock.ErrNotHeld)
		Settle(2 * LongTTL)
		Must(t, renewed.Verify(t.Context()))
		Is(t, Try(t, l, Key, redlock.Reentrant("other")), redlock.ErrHeld)
		Give(t, renewed)
		Settle(time.Second)
		Must(t, Try(t, l, Key, redlock.Reentrant("other"))) // the renewal has stopped
	})
}

func TestALapsedInnerHoldDoesNotEndTheOuterOne(t *testing.T) {
	_, l := Started(t, 3)
	outer := Take(t, l, Key, LongTTL, redlock.Reentrant("me"))
	ctx := outer.Context(t.Context())
	inner, err := l.Acquire(ctx, Key, 200*time.Millisecond)
	Must(t, err)
	innerCtx := inner.Context(ctx)
	<-innerCtx.Done()
	Is(t, inner.Release(t.Context()), redlock.ErrNotHeld)
	Must(t, ctx.Err())
	Must(t, outer.Verify(t.Context()))
	Give(t, outer)
	Is(t, ctx.Err(), context.Canceled)
}

// Only an owner can release: Release needs a handle, and only an owner has a handle. There is one more case, a hold
// that was removed by hand. It has a separate error.
func TestALostReentrantHoldHasASeparateError(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, Key, LongTTL, redlock.Reentrant("me"))
	Everywhere(t, servers, lock)
	TellAll(t, servers, "del", Key)
	thief := Take(t, l, Key, LongTTL, redlock.Reentrant("thief"))
	Is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
	err := lock.Release(t.Context())
	Is(t, err, redlock.ErrNotHeld)
	IsNot(t, err, redlock.ErrNoQuorum, redlock.ErrHeld)
	Must(t, thief.Verify(t.Context()))
	Give(t, thief)
}

// Masters are silent for a moment when an owner enters its lock again, while other owners of the same process wait
// for the key. The owner that enters must not queue behind these waiters.
func TestAReentrantAcquireDoesNotQueueBehindOtherWaiters(t *testing.T) {
	InMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		outer := Acquire(t, l, time.Hour, redlock.Reentrant("me"))
		other := Wait(t, t.Context(), l, Key, LongTTL, redlock.Reentrant("you"))
		Settle(time.Second)
		masters[1:].Stop()
		inner := Wait(t, t.Context(), l, Key, LongTTL, redlock.Reentrant("me"))
		Settle(time.Second)
		masters[1:].Start()
		Give(t, inner.Get(t)) // long before the outer hold would have lapsed
		Give(t, outer)
		Give(t, other.Get(t))
	})
}
