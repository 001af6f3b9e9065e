package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/leader"
)

// A program calls IsLeader before every piece of work, so the call must cost next to nothing.
func BenchmarkIsLeader(b *testing.B) {
	l, err := redlock.New(memmaster.New(3).All(), redlock.Options{})
	must(b, err)
	c, err := leader.New(l, leader.Config{Key: "leader", TTL: time.Minute})
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	elected, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			close(elected)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-elected
	for b.Loop() {
		if !c.IsLeader() {
			b.Fatal("not the leader")
		}
	}
	stop()
	<-done
	shut(b, l)
}
