package asynqlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/asynqlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = locktest.Must

func TestTasksWithOneKeyAreProcessedOneAtATime(t *testing.T) {
	servers := redistest.StartN(t, 3)
	locker := locktest.Dial(t, servers, redlock.Options{})
	middleware := asynqlock.OneAtATime(locker, time.Minute, func(task *asynq.Task) string {
		return string(task.Payload())
	})
	task := func(key string) *asynq.Task { return asynq.NewTask("charge", []byte(key)) }
	process := func(key string, work func(ctx context.Context) error) error {
		return middleware(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return work(ctx) })).
			ProcessTask(t.Context(), task(key))
	}
	nothing := func(context.Context) error { return nil }
	must(t, process("orders:42", func(context.Context) error {
		if err := process("orders:42", nothing); !errors.Is(err, redlock.ErrHeld) || errors.Is(err, asynq.SkipRetry) {
			t.Errorf("the same key at once: %v, want ErrHeld and another try", err)
		}
		if err := process("orders:43", nothing); err != nil {
			t.Errorf("another key: %v", err)
		}
		return process("", nothing)
	}))
	err := process("orders:42", func(context.Context) error {
		for _, s := range servers {
			must(t, s.Client().FlushAll(t.Context()).Err())
		}
		return nil
	})
	if !errors.Is(err, redlock.ErrNotHeld) || !errors.Is(err, asynq.SkipRetry) {
		t.Errorf("a lock that was lost: %v", err)
	}
}

// heldLocker finds every key locked.
type heldLocker struct{}

func (heldLocker) Do(context.Context, string, time.Duration, func(context.Context) error, ...redlock.Option) error {
	return &redlock.QuorumError{Op: "acquire", Key: "orders:42", Reason: redlock.ErrHeld}
}

// freeLocker finds every key free.
type freeLocker struct{}

func (freeLocker) Do(ctx context.Context, _ string, _ time.Duration, fn func(context.Context) error,
	_ ...redlock.Option,
) error {
	return fn(ctx)
}

func TestATaskWhoseKeyIsBusyHasNotFailed(t *testing.T) {
	run := func(l asynqlock.Locker, handler error) error {
		middleware := asynqlock.OneAtATime(l, time.Minute, func(*asynq.Task) string { return "orders:42" })
		return middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return handler })).
			ProcessTask(t.Context(), asynq.NewTask("charge", nil))
	}
	const usual = 7 * time.Hour
	delay := asynqlock.RetryDelay(time.Second, func(int, error, *asynq.Task) time.Duration { return usual })
	busy := run(heldLocker{}, nil)
	if !errors.Is(busy, redlock.ErrHeld) || asynqlock.IsFailure(busy) {
		t.Errorf("busy: %v, a failure: %t", busy, asynqlock.IsFailure(busy))
	}
	for range 100 {
		if d := delay(1, busy, nil); d < 500*time.Millisecond || d > 1500*time.Millisecond {
			t.Fatalf("tried again after %v", d)
		}
	}
	for name, err := range map[string]error{
		"the handler's own error":                    run(freeLocker{}, errors.New("no such order")),
		"a lock that the handler wanted for itself":  run(freeLocker{}, redlock.ErrHeld),
		"a lock that was lost":                       run(freeLocker{}, redlock.ErrNotHeld),
		"masters that could not be reached, for one": redlock.ErrNoQuorum,
	} {
		if !asynqlock.IsFailure(err) || delay(1, err, nil) != usual {
			t.Errorf("%s: a failure: %t, tried again after %v", name, asynqlock.IsFailure(err), delay(1, err, nil))
		}
	}
	if err := run(freeLocker{}, nil); err != nil || asynqlock.IsFailure(err) {
		t.Errorf("a success: %v", err)
	}
	if d := asynqlock.RetryDelay(0, nil)(1, busy, nil); d <= 0 || d > 2*time.Second {
		t.Errorf("by default: %v", d)
	}
}
