package scenarios_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// SOURCES S4: a release removes its own hold only.
func TestS4ReadersShareAndAWriterExcludes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	first, second := take(t, a, key, longTTL, redlock.Shared()), take(t, b, key, longTTL, redlock.Shared())
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, first)
	must(t, first.Release(t.Context()))                         // once more: the same answer, and nothing happens
	is(t, try(t, a, key, redlock.Exclusive()), redlock.ErrHeld) // b still reads
	must(t, second.Verify(t.Context()))
	must(t, second.Extend(t.Context(), longTTL))
	give(t, second)

	writer := take(t, a, key, longTTL, redlock.Exclusive())
	is(t, try(t, b, key, redlock.Shared()), redlock.ErrHeld)
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, writer)
	must(t, try(t, b, key, redlock.Shared()))
}

// SOURCES S4: one key, so that it works on Cluster, and none left behind.
func TestS4ASharedLockIsOneKeyOnTheMaster(t *testing.T) {
	servers, l := started(t, 3)
	locks := []*redlock.Lock{
		take(t, l, key, longTTL, redlock.Shared()), take(t, l, key, longTTL, redlock.Shared()),
		take(t, l, "other", longTTL, redlock.Exclusive()),
	}
	for _, lock := range locks {
		everywhere(t, servers, lock)
	}
	for _, s := range servers {
		redistest.Eventually(t, promptly, func() bool {
			keys := s.Client().Keys(t.Context(), "*").Val()
			slices.Sort(keys)
			return slices.Equal(keys, []string{key, "other"})
		}, "two keys on each master for three holds of two")
	}
	give(t, locks...)
	for _, s := range servers {
		redistest.Eventually(t, promptly, func() bool { return s.Client().DBSize(t.Context()).Val() == 0 },
			"nothing to be left")
	}
}

func TestS4EachReadersHoldEndsByItself(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	long := take(t, a, key, longTTL, redlock.Shared())
	short := take(t, b, key, 500*time.Millisecond, redlock.Shared())
	<-short.Done()
	is(t, short.Err(), redlock.ErrNotHeld)
	must(t, long.Verify(t.Context()))
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	give(t, long)
	// the masters keep the short one a little longer than its holder may use it
	give(t, take(t, b, key, longTTL, redlock.Exclusive()))
}

// A holder has died. It keeps other owners out only until its ttl is over, and no client has to help.
func TestS4ExpiredHoldsVanishWithoutHelp(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	for i, left := range []redlock.Option{redlock.Shared(), redlock.Exclusive()} {
		for j, wanted := range []redlock.Option{redlock.Exclusive(), redlock.Shared(), redlock.AutoRenew()} {
			t.Run([]string{"shared", "exclusive"}[i]+", then "+[]string{"exclusive", "shared", "plain"}[j],
				func(t *testing.T) {
					t.Parallel()
					vanishes(t, servers, t.Name(), left, wanted)
				})
		}
	}
}

// vanishes takes a lock as its holder's death leaves it, and takes it as wanted.
func vanishes(t *testing.T, servers []*redistest.Server, k string, left, wanted redlock.Option) {
	t.Helper()
	l, dead := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	lock := take(t, dead, k, 1500*time.Millisecond, left)
	everywhere(t, servers, lock)
	hard, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dead.Close(hard); err == nil {
		t.Fatal("the dead Locker has released its lock")
	}
	is(t, try(t, l, k, redlock.Reentrant("other")), redlock.ErrHeld) // it is in the way while it lasts
	give(t, take(t, l, k, longTTL, wanted))
	nowhere(t, servers, k)
}

func TestOtherKindsOfLocksAreExcludedBySharedOnes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	kinds := map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "several": {redlock.AndKeys("more")},
		"shared": {redlock.Shared()}, "exclusive": {redlock.Exclusive()}, "reentrant": {redlock.Reentrant("somebody")},
	}
	for holds, opts := range kinds {
		held := take(t, a, key, longTTL, opts...)
		everywhere(t, servers, held)
		for wants, opts := range kinds {
			err := try(t, b, key, opts...)
			if holds == wants && (holds == "shared" || holds == "reentrant") {
				must(t, err) // the control
			} else {
				is(t, err, redlock.ErrHeld)
			}
		}
		give(t, held)
		nowhere(t, servers, key)
	}
}

// A writer that tries once keeps no reader out.
func TestAWriterThatDoesNotWaitKeepsNoReadersOut(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := dial(t, servers, redlock.Options{}), dial(t, servers, redlock.Options{})
	held := take(t, a, key, longTTL, redlock.Shared())
	everywhere(t, servers, held)
	is(t, try(t, b, key, redlock.Exclusive()), redlock.ErrHeld)
	must(t, try(t, b, key, redlock.Shared()))
	give(t, held)
}
