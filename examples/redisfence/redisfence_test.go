package redisfence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/examples/redisfence"
	"github.com/seed-624411e5/redlock/fence"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOlderTokensAreRefused(t *testing.T) {
	client, ctx := redistest.Start(t).Client(), t.Context()
	const now = 1_800_000_000_000_000 // tokens are of the order of the time in microseconds
	for _, step := range []struct {
		token uint64
		want  error
	}{
		{now, nil},
		{now, nil},
		{now + 1, nil},
		{now, &fence.StaleError{Key: "balance", Token: now, Seen: now + 1}},
		{0, fence.ErrNoToken},
		{1<<53 - 1, nil},
		{1<<53 - 2, &fence.StaleError{Key: "balance", Token: 1<<53 - 2, Seen: 1<<53 - 1}},
	} {
		err := redisfence.Set(ctx, client, "balance", fmt.Sprint(step.token), step.token)
		if fmt.Sprint(err) != fmt.Sprint(step.want) {
			t.Errorf("token %d: %v, want %v", step.token, err, step.want)
		}
	}
	if got, err := redisfence.Get(ctx, client, "balance"); err != nil || got != fmt.Sprint(1<<53-1) {
		t.Errorf("the value is %q, %v", got, err)
	}
	if _, err := redisfence.Get(ctx, client, "nothing"); !errors.Is(err, redis.Nil) {
		t.Errorf("a value that is not there: %v, want redis.Nil", err)
	}
}

func TestConcurrentHoldersNeverOverwriteTheirSuccessors(t *testing.T) {
	client := redistest.Start(t).Client()
	const holders = 200
	var wg sync.WaitGroup
	for i := range uint64(holders) {
		wg.Go(func() {
			token := i*37%holders + 1
			err := redisfence.Set(t.Context(), client, "balance", fmt.Sprint(token), token)
			var old *fence.StaleError
			if err != nil && (!errors.As(err, &old) || old.Seen <= token) {
				t.Errorf("token %d: %v", token, err)
			}
		})
	}
	wg.Wait()
	if got, err := redisfence.Get(t.Context(), client, "balance"); err != nil || got != fmt.Sprint(holders) {
		t.Errorf("the value is %q, %v, want the newest holder's value, %d", got, err, holders)
	}
}

// A holder is paused until its lock has passed on, and then goes on writing.
func Example() {
	ctx := context.Background()
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	data, err := embedded.New() // the server that holds the protected data
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = data.Close() }()
	client := redis.NewClient(&redis.Options{Addr: data.Addr()})
	defer client.Close()
	locker, err := redlock.Dial(ctx, masters.URLs(), redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(ctx) }()

	paused, err := locker.Acquire(ctx, "account:7", 200*time.Millisecond, redlock.Fenced())
	if err != nil {
		fmt.Println(err)
		return
	}
	<-paused.Done() // it does not notice

	lock, err := locker.Acquire(ctx, "account:7", 10*time.Second, redlock.Fenced())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lock.Release(ctx) }()
	fmt.Println("the next holder:", redisfence.Set(ctx, client, "account:7:balance", "120", lock.Token()))

	err = redisfence.Set(ctx, client, "account:7:balance", "80", paused.Token())
	var old *fence.StaleError
	fmt.Println("the paused one is refused:", errors.As(err, &old))
	balance, err := redisfence.Get(ctx, client, "account:7:balance")
	fmt.Println("the balance:", balance, err)
	// Output:
	// the next holder: <nil>
	// the paused one is refused: true
	// the balance: 120 <nil>
}
