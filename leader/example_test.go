package leader_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/leader"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	masters, err := embedded.Start(3) // in your program: the URLs of three to five Redis servers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = masters.Close() }()
	locker, err := redlock.Dial(ctx, masters.URLs(), redlock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locker.Close(ctx) }()

	candidate, err := leader.New(locker, leader.Config{Key: "leader", TTL: 10 * time.Second, Value: "10.0.0.1:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	running, resign := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		done <- candidate.Run(running, func(ctx context.Context, _ *leader.Term) error {
			<-ctx.Done() // the leader's work, with the term's Token where something can check it
			return nil
		})
	}()

	for term, err := range candidate.Observe(ctx, 100*time.Millisecond) {
		if err != nil {
			fmt.Println(err)
			break
		}
		if term.Led() {
			fmt.Println("the leader is at", term.Value)
			break
		}
	}
	fmt.Println("it is this process:", candidate.IsLeader(), candidate.Healthy(ctx))
	resign()
	<-done //nolint:errcheck // ctx's error
	// Output:
	// the leader is at 10.0.0.1:8080
	// it is this process: true <nil>
}
