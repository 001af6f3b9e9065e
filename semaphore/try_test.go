package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/semaphore"
	"github.com/seed-624411e5/redlock/single"
)

// TestHazard103AsManyGetAPermitAsThereAre has five processes try for two permits at the same moment, over a network with delays.
func TestHazard103AsManyGetAPermitAsThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		for _, m := range masters {
			m.Behave(func(*single.Request) memmaster.Fate { return memmaster.Fate{Before: rand.N(2 * time.Millisecond)} })
		}
		var semaphores []*semaphore.Semaphore
		for range 5 {
			l, err := redlock.New(memmaster.Masters(masters), redlock.Options{Clock: memmaster.NewClock(0)})
			must(t, err)
			t.Cleanup(func() { must(t, l.Close(context.Background())) })
			semaphores = append(semaphores, permits(t, l, 2))
		}
		for tick := range 100 {
			got, errs := make([]*semaphore.Permit, len(semaphores)), make([]error, len(semaphores))
			var all sync.WaitGroup
			for i, s := range semaphores {
				all.Go(func() { got[i], errs[i] = s.TryAcquire(t.Context(), 10*time.Second) })
			}
			all.Wait()
			holders := 0
			for i, p := range got {
				if p != nil {
					holders++
					must(t, p.Release(t.Context()))
				} else if !errors.Is(errs[i], redlock.ErrHeld) {
					t.Errorf("tick %d: %v", tick, errs[i])
				}
			}
			if holders != 2 {
				t.Errorf("tick %d: %d of 5 have one of 2 permits", tick, holders)
			}
			<-time.After(time.Second)
		}
	})
}

// contested is a Locker whose even slots are held and whose odd ones are contended for.
type contested struct{ semaphore.Locker }

func (contested) TryAcquire(_ context.Context, key string, _ time.Duration, _ ...redlock.Option) (*redlock.Lock, error) {
	if (key[len(key)-1]-'0')%2 == 0 {
		return nil, redlock.ErrHeld
	}
	return nil, redlock.ErrContended
}

func TestPermitsThatNobodyWasSeenToHoldAreNotHeld(t *testing.T) {
	for range 10 { // it begins anywhere
		_, err := permits(t, contested{}, 3).TryAcquire(t.Context(), time.Second)
		if !errors.Is(err, redlock.ErrContended) || errors.Is(err, redlock.ErrHeld) {
			t.Error(err)
		}
	}
}
