package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// The context of a leader ends when its term is over. If the leader then returns another error than the context's,
// Run ends with it: a leader that could not save its work must not be elected again as if nothing were wrong.
func TestWhatALeaderReturnsAfterItsTermEndsRun(t *testing.T) {
	inMemory(t, func(t *testing.T, _ redlocktest.Masters, l *redlock.Locker) {
		election, err := redlock.NewElection(l, key, time.Second, redlock.MaxHold(500*time.Millisecond))
		must(t, err)
		broken := errors.New("disk full")
		returns := []func(context.Context) error{
			func(ctx context.Context) error { return ctx.Err() },
			context.Cause,
			func(context.Context) error { return broken },
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		terms := 0
		err = election.Run(ctx, func(ctx context.Context, term *redlock.Leadership) error {
			if term.Token() == 0 {
				t.Error("a term without a token")
			}
			select {
			case <-ctx.Done():
				is(t, context.Cause(ctx), redlock.ErrNotHeld)
			case <-time.After(time.Hour):
				t.Error("a leader's term is over, and its context has not ended")
				return broken
			}
			terms++
			return returns[min(terms, len(returns))-1](ctx)
		})
		if is(t, err, broken); terms != len(returns) {
			t.Errorf("%d terms, want %d", terms, len(returns))
		}
	})
}
