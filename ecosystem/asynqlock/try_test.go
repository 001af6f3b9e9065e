package asynqlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/asynqlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/single"
)

// TestHazard103OneTaskIsProcessed has five workers begin a task with the same key at the same moment, over a network with delays.
func TestHazard103OneTaskIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		for _, m := range masters {
			m.Behave(func(*single.Request) memmaster.Fate { return memmaster.Fate{Before: rand.N(2 * time.Millisecond)} })
		}
		var processed atomic.Int64
		work := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			processed.Add(1)
			<-time.After(5 * time.Second) // longer than any of the others tries
			return nil
		})
		var workers []asynq.Handler
		for range 5 {
			l, err := redlock.New(memmaster.Masters(masters), redlock.Options{Clock: memmaster.NewClock(0)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close(context.Background()) })
			workers = append(workers, asynqlock.OneAtATime(l, time.Minute, func(*asynq.Task) string { return "orders:42" })(work))
		}
		for tick := range 100 {
			processed.Store(0)
			errs := make([]error, len(workers))
			var all sync.WaitGroup
			for i, w := range workers {
				all.Go(func() { errs[i] = w.ProcessTask(t.Context(), asynq.NewTask("charge", nil)) })
			}
			all.Wait()
			for _, err := range errs {
				if err != nil && (asynqlock.IsFailure(err) || !errors.Is(err, redlock.ErrHeld)) {
					t.Errorf("tick %d: %v", tick, err)
				}
			}
			if n := processed.Load(); n != 1 {
				t.Errorf("tick %d: %d tasks were processed", tick, n)
			}
			<-time.After(time.Second)
		}
	})
}

// contendedLocker finds that several want every key.
type contendedLocker struct{}

func (contendedLocker) Do(context.Context, string, time.Duration, func(context.Context) error, ...redlock.Option) error {
	return &redlock.QuorumError{Op: "acquire", Key: "orders:42", Reason: redlock.ErrContended}
}

func TestATaskWhoseKeyIsContendedHasNotFailed(t *testing.T) {
	busy := asynqlock.OneAtATime(contendedLocker{}, time.Minute, func(*asynq.Task) string { return "orders:42" })
	err := busy(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })).ProcessTask(t.Context(), asynq.NewTask("charge", nil))
	if asynqlock.IsFailure(err) || !errors.Is(err, redlock.ErrContended) {
		t.Error(err)
	}
}
