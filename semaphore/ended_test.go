package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
)

// One group of masters ends the waits for its slots. Later ctx ends the others, and the error says so too.
func TestTheErrorSaysThatTheContextEndedTheWaitBesideAFailingGroup(t *testing.T) {
	for name, test := range map[string]struct {
		fails func(locktest.Fakes)
		opts  []redlock.Option
		says  error
	}{
		"outdated": {func(down locktest.Fakes) {
			for _, m := range down {
				m.Known = 3
			}
		}, nil, redlock.ErrOutdated},
		"out of reach": {
			func(down locktest.Fakes) { down.Behave(locktest.RefuseAll) },
			[]redlock.Option{redlock.MaxOutage(time.Second)},
			redlock.ErrNoQuorum,
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, 3, func(t *testing.T, up locktest.Fakes) {
				down := locktest.Fakes{locktest.NewFake("d1"), locktest.NewFake("d2"), locktest.NewFake("d3")}
				test.fails(down)
				opts := redlock.Options{Clock: locktest.NewClock(), Generation: 1}
				locker, err := sharded.New([]sharded.Group{
					{Name: "up", Masters: up.Masters(), Options: opts},
					{Name: "down", Masters: down.Masters(), Options: opts},
				}, sharded.Options{})
				must(t, err)
				defer func() {
					down.Behave(nil)
					must(t, locker.Close(context.Background()))
				}()
				s := permits(t, locker, 8)
				for err == nil { // until all slots of the first group are held
					_, err = s.TryAcquire(t.Context(), time.Hour)
				}
				_, err = s.Acquire(within(t, 5*time.Second), time.Hour, test.opts...)
				is(t, err, context.DeadlineExceeded)
				is(t, err, test.says)
			})
		})
	}
}
