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

func ExampleDoValue() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(ctx) }()

	n, err := redlock.DoValue(ctx, locker, "report", 10*time.Second, func(context.Context) (int, error) {
		return 12, nil // orders that were shipped
	})
	fmt.Println(n, err)
	// Output: 12 <nil>
}

// A job that is due at midnight on every machine runs on one machine, even if the clocks differ by a few seconds.
func ExampleMinHold() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	for _, machine := range []string{"one", "other"} {
		locker, err := redlock.Dial(ctx, urls, redlock.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		err = locker.Do(ctx, "nightly", time.Minute, func(context.Context) error {
			fmt.Println("runs on", machine)
			return nil
		}, redlock.MaxAttempts(1), redlock.MinHold(30*time.Second))
		fmt.Println("not run:", errors.Is(err, redlock.ErrHeld))
		_ = locker.Close(ctx) // waits for no MinHold
	}
	// Output:
	// runs on one
	// not run: false
	// not run: true
}

func ExampleLocker_Held() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(ctx) }()
	lock, err := locker.Acquire(ctx, "orders:42", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, held := range locker.Held() {
		fmt.Println(held.Keys, held.ID == lock.ID(), held.Renewals)
	}
	_ = lock.Release(ctx)
	fmt.Println(len(locker.Held()))
	// Output:
	// [orders:42] true 0
	// 0
}

// Another process replaces the first one and goes on with its lock; both processes are this one here.
func ExampleLocker_Attach() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(ctx) }()

	lock, err := locker.Acquire(ctx, "import", time.Minute, redlock.Fenced(), redlock.AutoRenew())
	if err != nil {
		fmt.Println(err)
		return
	}
	handover, err := lock.Handover() // when its work has come to an end
	if err != nil {
		fmt.Println(err)
		return
	}
	text := handover.Secret() // through a pipe to the new process, for instance

	var received redlock.Handover
	if err := received.UnmarshalText([]byte(text)); err != nil {
		fmt.Println(err)
		return
	}
	next, err := locker.Attach(ctx, received, time.Minute, redlock.AutoRenew())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the old one:", errors.Is(lock.Err(), redlock.ErrNotHeld))
	fmt.Println("its token is older:", lock.Token() < next.Token())
	fmt.Println(next.Release(ctx))
	// Output:
	// the old one: true
	// its token is older: true
	// <nil>
}
