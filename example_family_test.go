package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
)

// The resource compares the tokens of two holders: the later holder has the greater token.
func ExampleFenced() {
	ctx := context.Background()
	urls, stop := masters(5)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	var newest uint64 // the resource's: the greatest token that it has seen
	write := func(token uint64) error {
		if token < newest {
			return errors.New("refused: a later holder has been here")
		}
		newest = token
		return nil
	}
	first, err := locker.Acquire(ctx, "report", 10*time.Second, redlock.Fenced())
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = first.Release(ctx) // or it lapsed, while its holder was paused
	second, err := locker.Acquire(ctx, "report", 10*time.Second, redlock.Fenced())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Release(ctx)

	fmt.Println("second:", write(second.Token()))
	fmt.Println("first: ", write(first.Token()))
	// Output:
	// second: <nil>
	// first:  refused: a later holder has been here
}

// SOURCES S4: readers share, a writer excludes them and other writers, and each removes only its own hold.
func ExampleShared() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	alice, err := locker.Acquire(ctx, "catalogue", 10*time.Second, redlock.Shared())
	if err != nil {
		fmt.Println(err)
		return
	}
	bob, err := locker.Acquire(ctx, "catalogue", 10*time.Second, redlock.Shared())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.TryAcquire(ctx, "catalogue", 10*time.Second, redlock.Exclusive())
	fmt.Println("a writer beside two readers:", errors.Is(err, redlock.ErrHeld))

	_ = alice.Release(ctx)
	_ = alice.Release(ctx) // once more does no harm
	_, err = locker.TryAcquire(ctx, "catalogue", 10*time.Second, redlock.Exclusive())
	fmt.Println("a writer beside one reader:", errors.Is(err, redlock.ErrHeld))

	_ = bob.Release(ctx)
	writer, err := locker.Acquire(ctx, "catalogue", 10*time.Second, redlock.Exclusive())
	fmt.Println("a writer alone:", err)
	if err != nil {
		return
	}
	defer writer.Release(ctx)
	_, err = locker.TryAcquire(ctx, "catalogue", 10*time.Second, redlock.Shared())
	fmt.Println("a reader beside a writer:", errors.Is(err, redlock.ErrHeld))
	// Output:
	// a writer beside two readers: true
	// a writer beside one reader: true
	// a writer alone: <nil>
	// a reader beside a writer: true
}

// SOURCES S0, S2: an owner may take the key again. Three acquisitions need three releases, and each hold expires
// separately.
func ExampleReentrant() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	var holds []*redlock.Lock
	for range 3 {
		hold, err := locker.Acquire(ctx, "orders:42", 10*time.Second, redlock.Reentrant("job-17"))
		if err != nil {
			fmt.Println(err)
			return
		}
		holds = append(holds, hold)
	}
	for _, hold := range holds {
		_, err := locker.TryAcquire(ctx, "orders:42", 10*time.Second, redlock.Reentrant("job-18"))
		fmt.Println("job-18 is kept out:", errors.Is(err, redlock.ErrHeld))
		if err := hold.Release(ctx); err != nil {
			fmt.Println(err)
		}
	}
	other, err := locker.Acquire(ctx, "orders:42", 10*time.Second, redlock.Reentrant("job-18"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("job-18 is in:", other.Owner())
	_ = other.Release(ctx)
	// Output:
	// job-18 is kept out: true
	// job-18 is kept out: true
	// job-18 is kept out: true
	// job-18 is in: job-18
}

// Code that is called under a lock, and takes the same lock, enters it again by the Context that is handed down.
func ExampleLock_Context_reentrant() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	charge := func(ctx context.Context) error { // takes the lock, whoever calls it
		return locker.Do(ctx, "account:7", 10*time.Second, func(context.Context) error {
			fmt.Println("charged")
			return nil
		})
	}
	err = locker.Do(ctx, "account:7", 10*time.Second, charge, redlock.Exclusive())
	fmt.Println("under an exclusive lock:", err)
	err = locker.Do(ctx, "account:7", 10*time.Second, charge)
	fmt.Println("under a plain one:", errors.Is(err, redlock.ErrAlreadyHeld))
	// Output:
	// charged
	// under an exclusive lock: <nil>
	// under a plain one: true
}

// All keys or none: on every master at once, and by majority.
func ExampleAndKeys() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	transfer, err := locker.Acquire(ctx, "account:7", 10*time.Second, redlock.AndKeys("account:3"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(transfer.Keys())
	_, err = locker.TryAcquire(ctx, "account:5", 10*time.Second, redlock.AndKeys("account:3"))
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok {
		for _, node := range q.Nodes {
			if node.Key != "" {
				fmt.Println("in the way:", node.Key)
				break
			}
		}
	}
	_ = transfer.Release(ctx)
	// Output:
	// [account:3 account:7]
	// in the way: account:3
}

// SOURCES S1: an interval and a maximum number of attempts.
func ExampleMaxAttempts() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	held, err := locker.Acquire(ctx, "orders:42", 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Acquire(ctx, "orders:42", 10*time.Second, redlock.MaxAttempts(3),
		redlock.RetryEvery(20*time.Millisecond))
	fmt.Println("after three attempts:", errors.Is(err, redlock.ErrHeld))

	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = locker.Acquire(ctx, "orders:42", 10*time.Second)
	fmt.Println("after a second:", errors.Is(err, redlock.ErrHeld) && errors.Is(err, context.DeadlineExceeded))
	_ = held.Release(ctx)
	// Output:
	// after three attempts: true
	// after a second: true
}

// SOURCES S3: who holds a key, by majority, and whether the masters still have a given lock.
func ExampleLocker_Holder() {
	ctx := context.Background()
	urls, stop := masters(3)
	defer stop()
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	lock, err := locker.Acquire(ctx, "orders:42", 10*time.Second, redlock.Reentrant("job-17"))
	if err != nil {
		fmt.Println(err)
		return
	}
	holder, err := locker.Holder(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(holder.ID == lock.ID(), holder.TTL > 9*time.Second, lock.Verify(ctx))
	_ = lock.Release(ctx)
	holder, err = locker.Holder(ctx, "orders:42")
	fmt.Println(holder.Held, err, errors.Is(lock.Verify(ctx), redlock.ErrNotHeld))
	// Output:
	// true true <nil>
	// false <nil> true
}
