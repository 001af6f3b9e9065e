package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
)

// readCatalogue shares the lock with other readers.
func readCatalogue(ctx context.Context, locker *redlock.Locker) error {
	return locker.Do(ctx, "catalogue", 10*time.Second, func(context.Context) error {
		fmt.Println("reading")
		return nil
	}, redlock.Shared())
}

// writeCatalogue excludes readers and other writers.
func writeCatalogue(ctx context.Context, locker *redlock.Locker) error {
	return locker.Do(ctx, "catalogue", 10*time.Second, func(context.Context) error {
		fmt.Println("writing")
		return nil
	}, redlock.Exclusive())
}

// transfer locks two accounts, or none.
func transfer(ctx context.Context, locker *redlock.Locker) error {
	return locker.Do(ctx, "account:3", 10*time.Second, func(context.Context) error {
		fmt.Println("transferring")
		return nil
	}, redlock.AndKeys("account:7"))
}
