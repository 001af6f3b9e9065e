package scenarios_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/redlocktest"
)

func TestS2ThreeAcquiresNeedThreeReleases(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	const owner = "job-17"
	// The Lockers differ: the identity of the owner does not depend on the process.
	holds := []*redlock.Lock{
		take(t, a, key, longTTL, redlock.Reentrant(owner)), take(t, b, key, longTTL, redlock.Reentrant(owner)),
		take(t, a, key, longTTL, redlock.Reentrant(owner)),
	}
	other := dial(t, servers, redlock.Options{})
	for i, hold := range holds {
		if hold.Owner() != owner {
			t.Errorf("hold %d is of %q", i, hold.Owner())
		}
		is(t, try(t, other, key, redlock.Reentrant("job-1")), redlock.ErrHeld)
		is(t, try(t, other, key), redlock.ErrHeld)
		redistest.Eventually(t, promptly, func() bool { return holderOf(t, other, key).Holds == len(holds)-i },
			"the holds to be counted")
		give(t, hold)
	}
	must(t, try(t, other, key, redlock.Reentrant("job-1")))
}

func TestAnAcquireUnderTheLocksContextIsReentrant(t *testing.T) {
	_, l := started(t, 3)
	for name, opt := range map[string]redlock.Option{
		"reentrant": redlock.Reentrant("me"), "exclusive": redlock.Exclusive(),
	} {
		outer := take(t, l, key, longTTL, opt)
		type private struct{}
		ctx := context.WithValue(outer.Context(t.Context()), private{}, 1) // as handed down by others
		inner, err := l.TryAcquire(ctx, key, longTTL)
		must(t, err)
		if inner.Owner() != outer.Owner() {
			t.Errorf("%s: the inner hold is of another owner", name)
		}
		innermost, err := l.Acquire(inner.Context(ctx), key, longTTL, opt)
		must(t, err)
		give(t, innermost, inner)
		must(t, outer.Verify(t.Context()))
		is(t, try(t, l, key, redlock.Reentrant("somebody else")), redlock.ErrHeld)
		give(t, outer)
	}
}

func TestAnAcquireUnderALockOfAnotherKeyIsOrdinary(t *testing.T) {
	_, l := started(t, 3)
	outer := take(t, l, "other", longTTL, redlock.Reentrant("me"))
	lock, err := l.TryAcquire(outer.Context(t.Context()), key, longTTL)
	must(t, err)
	if lock.Owner() == outer.Owner() {
		t.Error("the lock of one key became the owner of another")
	}
	// Two locks down, the outermost is still found.
	again, err := l.TryAcquire(lock.Context(outer.Context(t.Context())), "other", longTTL)
	must(t, err)
	give(t, again, lock, outer)
}

// SOURCES S1: locking twice is a separate error, not an endless wait.
func TestALockThatIsNotReentrantSaysSo(t *testing.T) {
	servers, l := started(t, 3)
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
		outer := take(t, l, key, longTTL, test.outer...)
		ctx := outer.Context(t.Context())
		everywhere(t, servers, outer)
		before := settled(t, servers)
		_, err := l.Acquire(ctx, key, longTTL, test.inner...)
		if !errors.Is(err, redlock.ErrAlreadyHeld) || errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%s: %v, want ErrAlreadyHeld", name, err)
		}
		if after := settled(t, servers); after != before {
			t.Errorf("%s: %d commands were sent", name, after-before)
		}
		give(t, outer)
		// A lock that is over is no lock to wait for.
		lock, err := l.Acquire(context.WithoutCancel(ctx), key, longTTL, redlock.MaxAttempts(20))
		if err != nil {
			t.Errorf("%s: after the release: %v", name, err)
			continue
		}
		give(t, lock)
		nowhere(t, servers, key)
	}
}

// Hazard 29: where holds are counted, a release that is sent twice frees a lock that is still held.
func TestHazard29ARepeatedReleaseDoesNotFree(t *testing.T) {
	_, l := started(t, 3)
	first, second := take(t, l, key, longTTL, redlock.Reentrant("me")),
		take(t, l, key, longTTL, redlock.Reentrant("me"))
	for range 3 {
		must(t, first.Release(t.Context()))
	}
	must(t, second.Verify(t.Context()))
	if n := holderOf(t, l, key).Holds; n != 1 {
		t.Errorf("%d holds are left, want one", n)
	}
	is(t, try(t, l, key, redlock.Reentrant("other")), redlock.ErrHeld)
	give(t, second)
}

// SOURCES S2: the reentrant lock is renewed while it is held, by every hold for itself.
func TestS2ReentrantHoldsAreRenewed(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		renewed := acquire(t, l, longTTL, redlock.Reentrant("me"), redlock.AutoRenew())
		lapsing := acquire(t, l, longTTL, redlock.Reentrant("me"))
		<-lapsing.Done()
		is(t, lapsing.Err(), redlock.ErrNotHeld)
		settle(2 * longTTL)
		must(t, renewed.Verify(t.Context()))
		is(t, try(t, l, key, redlock.Reentrant("other")), redlock.ErrHeld)
		give(t, renewed)
		settle(time.Second)
		must(t, try(t, l, key, redlock.Reentrant("other"))) // the renewal has stopped
	})
}

func TestALapsedInnerHoldDoesNotEndTheOuterOne(t *testing.T) {
	_, l := started(t, 3)
	outer := take(t, l, key, longTTL, redlock.Reentrant("me"))
	ctx := outer.Context(t.Context())
	inner, err := l.Acquire(ctx, key, 200*time.Millisecond)
	must(t, err)
	innerCtx := inner.Context(ctx)
	<-innerCtx.Done()
	is(t, inner.Release(t.Context()), redlock.ErrNotHeld)
	must(t, ctx.Err())
	must(t, outer.Verify(t.Context()))
	give(t, outer)
	is(t, ctx.Err(), context.Canceled)
}

// Only an owner can release: Release needs a handle, and only an owner has a handle. There is one more case, a hold
// that was removed by hand. It has a separate error.
func TestALostReentrantHoldHasASeparateError(t *testing.T) {
	servers, l := started(t, 3)
	lock := take(t, l, key, longTTL, redlock.Reentrant("me"))
	everywhere(t, servers, lock)
	tellAll(t, servers, "del", key)
	thief := take(t, l, key, longTTL, redlock.Reentrant("thief"))
	is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
	err := lock.Release(t.Context())
	is(t, err, redlock.ErrNotHeld)
	isNot(t, err, redlock.ErrNoQuorum, redlock.ErrHeld)
	must(t, thief.Verify(t.Context()))
	give(t, thief)
}

// Masters are silent for a moment when an owner enters its lock again, while other owners of the same process wait
// for the key. The owner that enters must not queue behind these waiters.
func TestAReentrantAcquireDoesNotQueueBehindOtherWaiters(t *testing.T) {
	inMemory(t, func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker) {
		outer := acquire(t, l, time.Hour, redlock.Reentrant("me"))
		other := wait(t, t.Context(), l, key, longTTL, redlock.Reentrant("you"))
		settle(time.Second)
		masters[1:].Stop()
		inner := wait(t, t.Context(), l, key, longTTL, redlock.Reentrant("me"))
		settle(time.Second)
		masters[1:].Start()
		give(t, inner.Get(t)) // long before the outer hold would have lapsed
		give(t, outer)
		give(t, other.Get(t))
	})
}
