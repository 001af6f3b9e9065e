package asynqlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/ecosystem/asynqlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// handlers charges one order at a time, over all workers. The payload of a task is the number of the order.
func handlers(locker *redlock.Locker, charge func(ctx context.Context, order string) error) *asynq.ServeMux {
	mux := asynq.NewServeMux()
	mux.Use(asynqlock.OneAtATime(locker, time.Minute, func(task *asynq.Task) string {
		return "orders:" + string(task.Payload())
	}))
	mux.HandleFunc("charge", func(ctx context.Context, task *asynq.Task) error {
		return charge(ctx, string(task.Payload()))
	})
	return mux
}

// worker makes a server that tries a task again after about a second while its order is locked.
func worker(queue asynq.RedisConnOpt) *asynq.Server {
	return asynq.NewServer(queue, asynq.Config{
		IsFailure:      asynqlock.IsFailure,
		RetryDelayFunc: asynqlock.RetryDelay(time.Second, asynq.DefaultRetryDelayFunc),
	})
}

func Example() {
	ctx := context.Background()
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	locker, err := redlock.Dial(ctx, masters.URLs(), redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := handlers(locker, func(_ context.Context, order string) error {
		fmt.Println("charging", order)
		return nil
	})
	// worker(queue).Run(mux) does this for each task
	fmt.Println(mux.ProcessTask(ctx, asynq.NewTask("charge", []byte("42"))))
	closing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fmt.Println(locker.Close(closing))
	// Output:
	// charging 42
	// <nil>
	// <nil>
}

func TestTheWorkerOfTheRecipeChargesAnOrder(t *testing.T) {
	redis := redistest.Start(t)
	locker, err := redlock.Dial(t.Context(), []string{redis.URL()}, redlock.Options{})
	must(t, err)
	charged := make(chan string, 1)
	mux := handlers(locker, func(_ context.Context, order string) error {
		charged <- order
		return nil
	})
	queue := asynq.RedisClientOpt{Addr: redis.Addr()}
	server := worker(queue)
	must(t, server.Start(mux))
	client := asynq.NewClient(queue)
	if _, err := client.Enqueue(asynq.NewTask("charge", []byte("42"))); err != nil {
		t.Error(err)
	} else if order := <-charged; order != "42" {
		t.Errorf("charged %q, want 42", order)
	}
	server.Shutdown()
	must(t, client.Close())
	must(t, locker.Close(t.Context()))
}
