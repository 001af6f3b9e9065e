package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
)

// The function finds its lock in its context. The resource refuses a token that is below the greatest it has seen.
func ExampleFromContext() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	var seen uint64 // by the resource
	write := func(token uint64) error {
		if token < seen {
			return errors.New("a later holder has written")
		}
		seen = token
		return nil
	}
	err = locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
		lock, _ := redlock.FromContext(ctx)
		return write(lock.Token())
	}, redlock.Fenced())
	fmt.Println("written:", err == nil, "- an older token:", write(seen-1))
	// Output: written: true - an older token: a later holder has written
}

// Of several machines that start a job at the same moment one runs it.
func ExampleLocker_TryDo() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	err = locker.TryDo(ctx, "report", 10*time.Second, func(context.Context) error {
		another := locker.TryDo(ctx, "report", 10*time.Second, func(context.Context) error { return nil })
		fmt.Println("another run at the same time:", !errors.Is(another, redlock.ErrHeld))
		return nil
	})
	fmt.Println("it ran:", err == nil)
	// Output:
	// another run at the same time: false
	// it ran: true
}
