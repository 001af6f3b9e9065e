package gocronlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/gocronlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/single"
)

// TestHazard103OneSchedulerRunsTheJob has five schedulers ask for a job's lock at the same moment, over a network with delays.
func TestHazard103OneSchedulerRunsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		for _, m := range masters {
			m.Behave(func(*single.Request) memmaster.Fate { return memmaster.Fate{Before: rand.N(2 * time.Millisecond)} })
		}
		var lockers []gocron.Locker
		for range 5 {
			l, err := redlock.New(memmaster.Masters(masters), redlock.Options{Clock: memmaster.NewClock(0)})
			must(t, err)
			t.Cleanup(func() { must(t, l.Close(context.Background())) })
			locker, err := gocronlock.New(l, time.Minute, func(_ string, err error) { t.Error(err) })
			must(t, err)
			lockers = append(lockers, locker)
		}
		for tick := range 100 {
			locks, errs := make([]gocron.Lock, len(lockers)), make([]error, len(lockers))
			var all sync.WaitGroup
			for i, l := range lockers {
				all.Go(func() { locks[i], errs[i] = l.Lock(t.Context(), "report") })
			}
			all.Wait()
			runs := 0
			for i, err := range errs {
				if err == nil {
					runs++
					must(t, locks[i].Unlock(t.Context()))
				} else if !errors.Is(err, redlock.ErrHeld) {
					t.Errorf("tick %d: %v", tick, err)
				}
			}
			if runs != 1 {
				t.Errorf("tick %d: the job ran %d times", tick, runs)
			}
			<-time.After(time.Second)
		}
	})
}
