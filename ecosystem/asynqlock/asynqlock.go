// Package asynqlock is an example of a middleware for hibiken/asynq: tasks with one key are processed one at a time, over
// all workers.
//
//	mux := asynq.NewServeMux()
//	mux.Use(asynqlock.OneAtATime(locker, time.Minute, func(t *asynq.Task) string { return "orders:" + orderOf(t) }))
package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-624411e5/redlock"
)

// Locker is what it takes of a *redlock.Locker or a *redlock.Sharded.
type Locker interface {
	Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...redlock.Option) error
}

// OneAtATime processes a task while holding the lock on its key, which is renewed; "" needs none. The task's context ends
// when the lock is lost. A task whose key is busy fails with redlock.ErrHeld: asynq tries it again later and this worker
// goes on to others. A task whose lock was lost fails, whatever the handler said, and may have overlapped with another: it
// is not tried again by itself (asynq.SkipRetry), because only the program knows whether that is safe.
func OneAtATime(locker Locker, ttl time.Duration, keyOf func(*asynq.Task) string) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			key := keyOf(task)
			if key == "" {
				return next.ProcessTask(ctx, task)
			}
			err := locker.Do(ctx, key, ttl, func(ctx context.Context) error { return next.ProcessTask(ctx, task) }, redlock.MaxAttempts(1))
			if errors.Is(err, redlock.ErrNotHeld) {
				return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
			}
			return err
		})
	}
}
