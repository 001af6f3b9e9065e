package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/semaphore"
)

// nightly makes a report on one of the machines that all start it at midnight.
func nightly(ctx context.Context, locker *redlock.Locker) error {
	err := locker.TryDo(ctx, "report:nightly", time.Minute, func(context.Context) error {
		fmt.Println("making the report")
		return nil
	}, redlock.MinHold(30*time.Second)) // the clocks of the machines may differ by this much
	if errors.Is(err, redlock.ErrHeld) {
		fmt.Println("another machine makes the report")
		return nil
	}
	return err
}

// work does one job. At most three processes do so at a time.
func work(ctx context.Context, locker *redlock.Locker) error {
	places, err := semaphore.New(locker, "workers", 3)
	if err != nil {
		return err
	}
	permit, err := places.Acquire(ctx, 30*time.Second, redlock.AutoRenew()) // waits for a place
	if err != nil {
		return err
	}
	err = doJob(permit.Context(ctx))
	return errors.Join(err, permit.Release(ctx)) // ErrNotHeld: another process may have had the same slot
}

func doJob(ctx context.Context) error {
	fmt.Println("doing the job")
	return ctx.Err() // of a job that watches its context
}

// count returns a value from the work.
func count(ctx context.Context, locker *redlock.Locker) error {
	orders, err := redlock.DoValue(ctx, locker, "orders", 10*time.Second, func(context.Context) (int, error) {
		return 12, nil
	})
	if err != nil {
		return err // ErrNotHeld: the lock was lost, and the value may be out of date
	}
	fmt.Println("orders:", orders)
	return nil
}
