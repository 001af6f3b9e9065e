package redlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

// The README shows this function; a test in docs compares the two.
func shipOrder(ctx context.Context, masters []string) error {
	locker, err := redlock.Dial(ctx, masters, redlock.Options{})
	if err != nil {
		return err
	}
	defer locker.Close(ctx)

	return locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
		fmt.Println("nobody else is working on order 42")
		return nil // ctx is cancelled if the lock is lost before this
	})
}

func Example_readme() {
	cluster, err := embedded.Start(5) // five masters in this process; yours are redis://… URLs
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	if err := shipOrder(context.Background(), cluster.URLs()); err != nil {
		fmt.Println(err)
	}
	// Output: nobody else is working on order 42
}
