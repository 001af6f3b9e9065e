package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

// masters starts n masters in this process. A program names its own instead: redis://a:6379, redis://b:6379, …
func masters(n int) (urls []string, stop func()) {
	cluster, err := embedded.Start(n)
	if err != nil {
		fmt.Println(err)
		return nil, func() {}
	}
	return cluster.URLs(), func() { _ = cluster.Close() }
}

func Example() {
	ctx := context.Background()
	urls, stop := masters(5)
	defer stop()

	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	lock, err := locker.Acquire(ctx, "orders:42", 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Release(ctx)

	fmt.Println("working on", lock.Key())
	// Output: working on orders:42
}

// Do acquires, renews while the function runs, and releases. The function's context ends when the lock is lost.
func ExampleLocker_Do() {
	ctx := context.Background()
	urls, stop := masters(5)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	err = locker.Do(ctx, "report", 10*time.Second, func(ctx context.Context) error {
		fmt.Println("writing the report")
		return ctx.Err() // not nil if the lock was lost meanwhile
	})
	fmt.Println(err)
	// Output:
	// writing the report
	// <nil>
}

// A lock that renews itself, but not forever: a holder that hangs loses it after MaxHold.
func ExampleAutoRenew() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	lock, err := locker.Acquire(ctx, "import", 10*time.Second, redlock.AutoRenew(),
		redlock.MaxHold(100*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	<-lock.Done() // this holder hangs
	fmt.Println(lock.Err())
	// Output: redlock: not held any more: MaxHold is over
}

// TryAcquire asks once. Its error says which kind of no it was.
func ExampleLocker_TryAcquire() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	lock, err := locker.TryAcquire(ctx, "orders:42", 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Release(ctx)

	_, err = locker.TryAcquire(ctx, "orders:42", 10*time.Second)
	switch {
	case errors.Is(err, redlock.ErrHeld):
		fmt.Println("somebody else is at it")
	case errors.Is(err, redlock.ErrNoQuorum):
		fmt.Println("too few masters answer:", err)
	}
	if failed, ok := errors.AsType[*redlock.QuorumError](err); ok {
		// failed.Granted did, failed.Nodes says why not
		fmt.Printf("%d of %d masters have to grant it\n", failed.Quorum, failed.N)
	}
	// Output:
	// somebody else is at it
	// 2 of 3 masters have to grant it
}

// Close waits for locks that are held, and then leaves nothing behind: no key, no goroutine.
func ExampleLocker_Close() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = locker.Acquire(ctx, "orders:42", 10*time.Second); err != nil { // and never released
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	fmt.Println(locker.Close(ctx))
	_, err = locker.TryAcquire(context.Background(), "orders:42", 10*time.Second)
	fmt.Println(err)
	// Output:
	// redlock: close: 1 locks not released and 0 keys not confirmed removed lapse by their ttl: context deadline exceeded
	// redlock: locker closed
}

// Two tenants share masters, and use the same keys without meeting. On the masters, and for clients without Prefix,
// their keys have other names.
func ExampleOptions_prefix() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	dial := func(prefix string) *redlock.Locker {
		l, err := redlock.Dial(ctx, urls, redlock.Options{Prefix: prefix})
		if err != nil {
			panic(err)
		}
		return l
	}
	orders, payments, operator := dial("orders:"), dial("payments:"), dial("")
	defer orders.Close(ctx)
	defer payments.Close(ctx)
	defer operator.Close(ctx)

	first, err := orders.TryAcquire(ctx, "42", 10*time.Second)
	fmt.Println(first.Key(), err)
	defer first.Release(ctx)
	second, err := payments.TryAcquire(ctx, "42", 10*time.Second)
	fmt.Println(second.Key(), err)
	defer second.Release(ctx)
	for _, key := range []string{"42", "orders:42", "payments:42"} {
		h, err := operator.Holder(ctx, key)
		fmt.Println(key, h.Held, err)
	}
	// Output:
	// 42 <nil>
	// 42 <nil>
	// 42 false <nil>
	// orders:42 true <nil>
	// payments:42 true <nil>
}
