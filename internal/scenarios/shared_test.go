package scenarios_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// SOURCES S4: a release removes its own hold only.
func TestS4ReadersShareAndAWriterExcludes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	first, second := Take(t, a, Key, LongTTL, redlock.Shared()), Take(t, b, Key, LongTTL, redlock.Shared())
	Is(t, Try(t, b, Key, redlock.Exclusive()), redlock.ErrHeld)
	Give(t, first)
	Must(t, first.Release(t.Context()))                         // once more: the same answer, and nothing happens
	Is(t, Try(t, a, Key, redlock.Exclusive()), redlock.ErrHeld) // b still reads
	Must(t, second.Verify(t.Context()))
	Must(t, second.Extend(t.Context(), LongTTL))
	Give(t, second)

	writer := Take(t, a, Key, LongTTL, redlock.Exclusive())
	Is(t, Try(t, b, Key, redlock.Shared()), redlock.ErrHeld)
	Is(t, Try(t, b, Key, redlock.Exclusive()), redlock.ErrHeld)
	Give(t, writer)
	Must(t, Try(t, b, Key, redlock.Shared()))
}

// SOURCES S4: one key, so that it works on Cluster, and none left behind.
func TestS4ASharedLockIsOneKeyOnTheMaster(t *testing.T) {
	servers, l := Started(t, 3)
	locks := []*redlock.Lock{
		Take(t, l, Key, LongTTL, redlock.Shared()), Take(t, l, Key, LongTTL, redlock.Shared()),
		Take(t, l, "other", LongTTL, redlock.Exclusive()),
	}
	for _, lock := range locks {
		Everywhere(t, servers, lock)
	}
	for _, s := range servers {
		redistest.Eventually(t, Promptly, func() bool {
			keys := s.Client().Keys(t.Context(), "*").Val()
			slices.Sort(keys)
			return slices.Equal(keys, []string{Key, "other"})
		}, "two keys on each master for three holds of two")
	}
	Give(t, locks...)
	for _, s := range servers {
		redistest.Eventually(t, Promptly, func() bool { return s.Client().DBSize(t.Context()).Val() == 0 },
			"nothing to be left")
	}
}

func TestS4EachReadersHoldEndsByItself(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	long := Take(t, a, Key, LongTTL, redlock.Shared())
	short := Take(t, b, Key, 500*time.Millisecond, redlock.Shared())
	<-short.Done()
	Is(t, short.Err(), redlock.ErrNotHeld)
	Must(t, long.Verify(t.Context()))
	Is(t, Try(t, b, Key, redlock.Exclusive()), redlock.ErrHeld)
	Give(t, long)
	// the masters keep the short one a little longer than its holder may use it
	Give(t, Take(t, b, Key, LongTTL, redlock.Exclusive()))
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
	l, dead := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	lock := Take(t, dead, k, 1500*time.Millisecond, left)
	Everywhere(t, servers, lock)
	hard, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dead.Close(hard); err == nil {
		t.Fatal("the dead Locker has released its lock")
	}
	Is(t, Try(t, l, k, redlock.Reentrant("other")), redlock.ErrHeld) // it is in the way while it lasts
	Give(t, Take(t, l, k, LongTTL, wanted))
	Nowhere(t, servers, k)
}

func TestOtherKindsOfLocksAreExcludedBySharedOnes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	kinds := map[string][]redlock.Option{
		"plain": nil, "fenced": {redlock.Fenced()}, "several": {redlock.AndKeys("more")},
		"shared": {redlock.Shared()}, "exclusive": {redlock.Exclusive()}, "reentrant": {redlock.Reentrant("somebody")},
	}
	for holds, opts := range kinds {
		held := Take(t, a, Key, LongTTL, opts...)
		Everywhere(t, servers, held)
		for wants, opts := range kinds {
			err := Try(t, b, Key, opts...)
			if holds == wants && (holds == "shared" || holds == "reentrant") {
				Must(t, err) // the control
			} else {
				Is(t, err, redlock.ErrHeld)
			}
		}
		Give(t, held)
		Nowhere(t, servers, Key)
	}
}

// A writer that tries once keeps no reader out.
func TestAWriterThatDoesNotWaitKeepsNoReadersOut(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, Key, LongTTL, redlock.Shared())
	Everywhere(t, servers, held)
	Is(t, Try(t, b, Key, redlock.Exclusive()), redlock.ErrHeld)
	Must(t, Try(t, b, Key, redlock.Shared()))
	Give(t, held)
}
