// Package asynqlock is an example of a middleware for hibiken/asynq: tasks with one key are processed one at a time, over
// all workers.
//
//	mux := asynq.NewServeMux()
//	mux.Use(asynqlock.OneAtATime(locker, time.Minute, func(t *asynq.Task) string { return "orders:" + orderOf(t) }))
//
// A task whose key is busy has not failed. Say so to the server, or such a task uses up its retries and is archived:
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

// Locker is what it takes of a *redlock.Locker or a *sharded.Locker.
type Locker interface {
	Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...redlock.Option) error
}

// OneAtATime processes a task while holding the lock on its key, which is renewed; "" needs none. The task's context ends
// when the lock is lost. A task whose key is busy ends with an error that matches redlock.ErrHeld or redlock.ErrContended, and of which
// IsFailure and RetryDelay know: asynq tries it again later and this worker goes on to others. A task whose lock was lost fails, whatever the
// handler said, and may have overlapped with another: it is not tried again by itself (asynq.SkipRetry), because only the
// program knows whether that is safe.
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

// busyError says that a task has not begun, because its key is locked.
type busyError struct{ error }

func (e *busyError) Unwrap() error { return e.error }

// busy tells the error of a busy key from one of a handler that uses locks itself.
func busy(err error) bool {
	_, ok := errors.AsType[*busyError](err)
	return ok
}

// IsFailure is for asynq.Config.IsFailure. That a task's key was busy is no failure: it is not counted as a retry, so such a task
// is tried more often than asynq.MaxRetry says. Every other error is one. asynq asks only where a retry is left: a task with
// MaxRetry(0), or whose retries were used up by failures, is archived also when its key is busy. So give it one more.
func IsFailure(err error) bool { return err != nil && !busy(err) }

// RetryDelay is for asynq.Config.RetryDelayFunc: a task whose key was busy is tried again after about d, at least half of it
// and at most one and a half, so that many which wait for one key do not come together. For other errors it asks otherwise;
// nil is asynq.DefaultRetryDelayFunc. A d that is not positive is a second.
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
