package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
)

// readCatalogue reads beside other readers.
func readCatalogue(ctx context.Context, locker *redlock.Locker) error {
	return locker.Do(ctx, "catalogue", 10*time.Second, func(context.Context) error {
		fmt.Println("reading")
		return nil
	}, redlock.Shared())
}

// writeCatalogue writes while nobody reads or writes.
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
