package hold_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// freeAfter takes a lock with a MinHold of 2 s and a ttl of 10 s, and releases it early. It returns the time from the
// acquisition until another owner gets the key.
func freeAfter(t *testing.T,
	before, release func(t *testing.T, masters memmaster.Masters, lock *redlock.Lock),
) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		l, began := MemLocker(t, masters), time.Now()
		lock := Take(t, l, "job", 10*time.Second, redlock.MinHold(2*time.Second))
		Pass(time.Millisecond)
		before(t, masters, lock)
		_ = lock.Release(t.Context())
		release(t, masters, lock)
		next, err := MemLocker(t, masters).Acquire(t.Context(), "job", 10*time.Second)
		Must(t, err)
		took = time.Since(began)
		Must(t, next.Release(t.Context()))
	})
	return took
}

// A request that was sent under the lock may arrive when the key is only kept. Then it must not prolong the key.
func TestALateExtensionDoesNotProlongAKeptKey(t *testing.T) {
	took := freeAfter(t, func(t *testing.T, masters memmaster.Masters, lock *redlock.Lock) {
		masters.Behave(memmaster.On(single.Extend, memmaster.Fate{Before: 1500 * time.Millisecond}))
		Is(t, lock.Extend(t.Context(), 10*time.Second), redlock.ErrNoQuorum)
	}, func(t *testing.T, masters memmaster.Masters, lock *redlock.Lock) {
		Pass(time.Millisecond)
		if masters[0].Owner("job") == lock.Owner() || masters[0].Owner("job") == "" {
			t.Errorf("the kept key's owner is %q", masters[0].Owner("job"))
		}
		masters.Behave(nil)
	})
	if took < 2*time.Second || took > 2500*time.Millisecond {
		t.Errorf("MinHold 2s, and another owner has the key after %v", took)
	}
}

// If a master has not received a release that keeps its keys, the Locker asks the master again. The key is kept no
// longer than if the release had arrived.
func TestAReleaseThatKeepsItsKeysIsAskedForAgain(t *testing.T) {
	for name, c := range map[string]struct{ lost, want time.Duration }{
		"while they are to be kept": {time.Second, 2 * time.Second},
		"when that is over":         {4 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			took := freeAfter(t, func(_ *testing.T, masters memmaster.Masters, _ *redlock.Lock) {
				masters.Behave(memmaster.On(single.Release, memmaster.Fate{Lost: true}))
			}, func(_ *testing.T, masters memmaster.Masters, _ *redlock.Lock) {
				Pass(c.lost - 500*time.Millisecond) // which Release has taken
				masters.Behave(nil)
			})
			if took < c.want || took > c.want+time.Second {
				t.Errorf("another owner has the key after %v, want %v", took, c.want)
			}
		})
	}
}
