// Package asynqlock is an example of a middleware for hibiken/asynq: tasks with one key are processed one at a time,
// over all workers.
//
//	mux := asynq.NewServeMux()
//	mux.Use(asynqlock.OneAtATime(locker, time.Minute, func(t *asynq.Task) string { return "orders:" + orderOf(t) }))
//
// A busy key is no failure of the task. Say so to the server, or such a task uses up its retries and is archived:
//
//	asynq.NewServer(redis, asynq.Config{
//		IsFailure:      asynqlock.IsFailure,
//		RetryDelayFunc: asynqlock.RetryDelay(time.Second, asynq.DefaultRetryDelayFunc),
//	})
package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-624411e5/redlock"
)

// Locker has the method that asynqlock needs: pass a *redlock.Locker or a *sharded.Locker.
type Locker interface {
	Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
		opts ...redlock.Option) error
}

// OneAtATime processes each task under the lock on its key and renews the lock until the handler returns. A task with
// the key "" needs no lock. The task's context ends when the lock is lost.
//
// If the key is busy, the task ends with an error that matches redlock.ErrHeld or redlock.ErrContended. IsFailure and
// RetryDelay recognise this error: asynq tries the task again later, and the worker goes on to other tasks.
//
// If the lock is lost, the task fails, whatever the handler returns. It may have overlapped with another run. Then
// asynq does not try it again (asynq.SkipRetry), because only the program knows whether that is safe.
func OneAtATime(locker Locker, ttl time.Duration, keyOf func(*asynq.Task) string) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			key := keyOf(task)
			if key == "" {
				return next.ProcessTask(ctx, task)
			}
			began := false
			err := locker.Do(ctx, key, ttl, func(ctx context.Context) error {
				began = true
				return next.ProcessTask(ctx, task)
			}, redlock.MaxAttempts(1))
			switch {
			case errors.Is(err, redlock.ErrNotHeld):
				return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
			case !began && (errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrContended)):
				return &busyError{err}
			}
			return err
		})
	}
}

// busyError says that a task has not begun because its key is locked.
type busyError struct{ error }

func (e *busyError) Unwrap() error { return e.error }

// busy reports whether err is about the task's busy key, and not an error of a handler that uses locks itself.
func busy(err error) bool {
	_, ok := errors.AsType[*busyError](err)
	return ok
}

// IsFailure is for asynq.Config.IsFailure. A busy key is no failure, so asynq does not count it as a retry, and may try
// the task more often than asynq.MaxRetry says. Every other error is a failure.
//
// asynq calls IsFailure only if the task has a retry left. With MaxRetry(0), or when failures have used up its retries,
// asynq also archives the task after a busy key. So allow at least one retry.
func IsFailure(err error) bool { return err != nil && !busy(err) }

// RetryDelay is for asynq.Config.RetryDelayFunc. After a busy key it returns a random delay between d/2 and 3d/2, so
// that tasks which wait for the same key do not all return at once. For other errors it calls otherwise; nil means
// asynq.DefaultRetryDelayFunc. If d is not positive, it is a second.
func RetryDelay(d time.Duration, otherwise asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	if d <= 0 {
		d = time.Second
	}
	if otherwise == nil {
		otherwise = asynq.DefaultRetryDelayFunc
	}
	return func(n int, err error, task *asynq.Task) time.Duration {
		if busy(err) {
			return d/2 + rand.N(d)
		}
		return otherwise(n, err, task)
	}
}
