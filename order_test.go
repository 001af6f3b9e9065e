package redlock_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// On a master, a release follows the acquisition's earlier requests, and its request timeout begins then. Otherwise a
// slow master could use up most of the timeout with the acquisition. Then each release there would be left to the
// janitor, and the key would stay until then.
func TestAReleaseBehindASlowAcquisitionHasATimeoutOfItsOwn(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.locker(t, redlock.Options{RequestTimeout: 100 * time.Millisecond})
		masters[2].behave(away(95 * time.Millisecond))
		must(t, acquire(t, l, longTTL).Release(t.Context())) // now it is known to be far away
		settle(time.Second)
		masters[2].behave(func(r *single.Request) act {
			if r.Op == single.Acquire {
				return act{before: 120 * time.Millisecond}
			}
			return act{after: 20 * time.Millisecond}
		})
		lock := acquire(t, l, longTTL)
		must(t, lock.Release(t.Context()))
		settle(150 * time.Millisecond)
		if l.Pending() != 0 || masters.holders("") != 0 {
			t.Errorf("%d releases are pending, %d masters have the key", l.Pending(), masters.holders(""))
		}
		settle(time.Second)
		if n := masters[2].count(single.Release); n != 2 {
			t.Errorf("the slow master got %d releases, want one for each of two locks", n)
		}
	})
}
