package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/semaphore"
)

// At most three processes make a report at the same time.
func Example() {
	ctx := context.Background()
	locker, err := redlock.Dial(ctx, []string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"},
		redlock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := makeReport(ctx, locker); err != nil {
		log.Print(err)
	}
	if err := locker.Close(ctx); err != nil {
		log.Print(err)
	}
}

func makeReport(ctx context.Context, locker *redlock.Locker) error {
	runners, err := semaphore.New(locker, "report-runners", 3)
	if err != nil {
		return err
	}
	permit, err := runners.Acquire(ctx, 30*time.Second, redlock.AutoRenew())
	if err != nil {
		return err
	}
	err = report(permit.Context(ctx), permit.Slot)
	return errors.Join(err, permit.Release(ctx))
}

// report works in one of three places, until ctx is done.
func report(ctx context.Context, place int) error {
	fmt.Println("working in place", place)
	return ctx.Err()
}
