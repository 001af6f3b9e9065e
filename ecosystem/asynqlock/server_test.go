package asynqlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-624411e5/redlock/ecosystem/asynqlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// The task may be retried once, in a real asynq server. Its key is busy for more attempts than that. The task waits,
// runs when the key is free, and never counts as failed. A task without any retry is archived.
func TestABusyKeyUsesUpNoRetries(t *testing.T) {
	servers, locker := locktest.Started(t, 1)
	redis, held := servers[0], locktest.Take(t, locker, "orders:42", time.Minute)

	var attempts, processed atomic.Int32
	delay := asynqlock.RetryDelay(time.Millisecond, nil)
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: redis.Addr()}, asynq.Config{
		Concurrency: 1, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
		DelayedTaskCheckInterval: 10 * time.Millisecond,
		IsFailure:                asynqlock.IsFailure,
		RetryDelayFunc: func(n int, err error, task *asynq.Task) time.Duration {
			attempts.Add(1)
			return delay(n, err, task)
		},
	})
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.OneAtATime(locker, time.Minute, func(task *asynq.Task) string { return string(task.Payload()) }))
	mux.HandleFunc("charge", func(context.Context, *asynq.Task) error {
		processed.Add(1)
		return nil
	})
	must(t, server.Start(mux))
	t.Cleanup(server.Shutdown)
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: redis.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: redis.Addr()})
	t.Cleanup(func() { _ = inspector.Close() })
	queue := func() *asynq.QueueInfo {
		info, err := inspector.GetQueueInfo("default")
		must(t, err)
		return info
	}
	enqueue := func(retries int) {
		_, err := client.Enqueue(asynq.NewTask("charge", []byte("orders:42")), asynq.MaxRetry(retries))
		must(t, err)
	}
	enqueue(0)
	redistest.Eventually(t, time.Minute, func() bool { return queue().Archived == 1 },
		"the task without retries to be archived")
	before := queue().FailedTotal
	enqueue(1)

	redistest.Eventually(t, time.Minute, func() bool { return attempts.Load() >= 3 },
		"three attempts while the key is busy")
	if n := processed.Load(); n != 0 {
		t.Errorf("processed %d times while the key was busy", n)
	}
	must(t, held.Release(t.Context()))
	redistest.Eventually(t, time.Minute, func() bool { return processed.Load() == 1 }, "the task to be processed")

	if now := queue(); now.FailedTotal != before || now.Archived != 1 {
		t.Errorf("the queue: %+v; want no more failures than the %d before", now, before)
	}
}
