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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTasksWithOneKeyAreProcessedOneAtATime(t *testing.T) {
	servers := redistest.StartN(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locker.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	middleware := asynqlock.OneAtATime(locker, time.Minute, func(task *asynq.Task) string { return string(task.Payload()) })
	task := func(key string) *asynq.Task { return asynq.NewTask("charge", []byte(key)) }
	process := func(key string, work func(ctx context.Context) error) error {
		return middleware(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return work(ctx) })).ProcessTask(t.Context(), task(key))
	}
	nothing := func(context.Context) error { return nil }
	err = process("orders:42", func(context.Context) error {
		if err := process("orders:42", nothing); !errors.Is(err, redlock.ErrHeld) || errors.Is(err, asynq.SkipRetry) {
			t.Errorf("the same key at once: %v, want ErrHeld and another try", err)
		}
		if err := process("orders:43", nothing); err != nil {
			t.Errorf("another key: %v", err)
		}
		return process("", nothing)
	})
	if err != nil {
		t.Error(err)
	}
	err = process("orders:42", func(context.Context) error {
		for _, s := range servers {
			if err := s.Client().FlushAll(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if !errors.Is(err, redlock.ErrNotHeld) || !errors.Is(err, asynq.SkipRetry) {
		t.Errorf("a lock that was lost: %v", err)
	}
}
