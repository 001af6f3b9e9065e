package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

// The README shows this function; a test in docs compares the two.
func shipOrder(ctx context.Context, masters []string) error {
	locker, err := redlock.Dial(ctx, masters, redlock.Options{}) // one for the whole program, made when it starts
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx)) // also when ctx has ended: keys are removed then, not left to their ttl

	err = locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
		fmt.Println("nobody else is working on order 42")
		return nil // ctx is cancelled if the lock is lost before this
	})
	if errors.Is(err, redlock.ErrNotHeld) {
		return fmt.Errorf("the lock was lost while order 42 was worked on, look at what was done: %w", err)
	}
	return err
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
