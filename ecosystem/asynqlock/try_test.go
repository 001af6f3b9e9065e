package asynqlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/asynqlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
)

func TestHazard103OneTaskIsProcessed(t *testing.T) {
	memmaster.Lockstep(t, 1, func(t *testing.T, l *redlock.Locker) func() error {
		work := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			<-time.After(5 * time.Second)
			return nil
		})
		worker := asynqlock.OneAtATime(l, time.Minute, func(*asynq.Task) string { return "orders:42" })(work)
		return func() error {
			err := worker.ProcessTask(t.Context(), asynq.NewTask("charge", nil))
			if err != nil && asynqlock.IsFailure(err) {
				t.Errorf("it counts as a failure: %v", err)
			}
			return err
		}
	})
}

// contendedLocker finds that several want every key.
type contendedLocker struct{}

func (contendedLocker) Do(context.Context, string, time.Duration, func(context.Context) error,
	...redlock.Option,
) error {
	return &redlock.QuorumError{Op: "acquire", Key: "orders:42", Reason: redlock.ErrContended}
}

func TestATaskWhoseKeyIsContendedHasNotFailed(t *testing.T) {
	busy := asynqlock.OneAtATime(contendedLocker{}, time.Minute, func(*asynq.Task) string { return "orders:42" })
	err := busy(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })).
		ProcessTask(t.Context(), asynq.NewTask("charge", nil))
	if asynqlock.IsFailure(err) || !errors.Is(err, redlock.ErrContended) {
		t.Error(err)
	}
}
