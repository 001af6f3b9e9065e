package semaphore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/semaphore"
)

// Four slots become free in the same moment, and a waiter for all four gets more than one. It returns the surplus:
// MinHold keeps only the slot of the permit.
func TestHazard102MinHoldDoesNotKeepSurplusSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		const slots, minHold = 4, 5 * time.Second
		for i := range slots {
			masters.Hold(fmt.Sprintf("runners:slot:%d", i))
		}
		waits := permits(t, masters.Locker(t, redlock.Options{}), slots)
		got := make(chan *semaphore.Permit)
		go func() {
			p, err := waits.Acquire(t.Context(), time.Minute, redlock.MinHold(minHold))
			if err != nil {
				t.Error(err)
			}
			got <- p
		}()
		<-time.After(time.Second)
		synctest.Wait()
		for i := range slots {
			masters.Release(fmt.Sprintf("runners:slot:%d", i))
		}
		first := <-got
		others := permits(t, masters.Locker(t, redlock.Options{}), slots)
		for range slots - 1 {
			p, err := others.Acquire(within(t, time.Second), time.Minute)
			if err != nil {
				t.Fatalf("a permit without a holder: %v", err)
			}
			defer func() { must(t, p.Release(t.Context())) }() //nolint:gocritic // all, at the end
		}
		must(t, first.Release(t.Context())) // the control: the permit's slot is kept
		if p, err := others.Acquire(within(t, time.Second), time.Minute); err == nil {
			t.Errorf("slot %d was granted, although MinHold keeps it", p.Slot)
		}
	})
}
