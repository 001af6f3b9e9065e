package observe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

func TestJoinPassesEveryEventToAll(t *testing.T) {
	if observe.Join() != nil || observe.Join(nil) != nil {
		t.Error("Join without observers returned an observer")
	}
	var got []string
	note := func(who string) func(redlock.Event) {
		return func(e redlock.Event) { got = append(got, who+e.Key) }
	}
	observe.Join(note("a"), nil, note("b"))(redlock.Event{Key: "1"})
	observe.Join(nil, note("c"))(redlock.Event{Key: "2"})
	if fmt.Sprint(got) != "[a1 b1 c2]" {
		t.Errorf("got %v", got)
	}
}

func TestEveryErrorHasItsWord(t *testing.T) {
	for want, err := range map[string]error{
		"ok": nil, "held": redlock.ErrHeld, "contended": redlock.ErrContended, "no_quorum": redlock.ErrNoQuorum,
		"expired":  redlock.ErrExpired,
		"not_held": redlock.ErrNotHeld, "already_held": redlock.ErrAlreadyHeld,
		"closed":  errors.Join(redlock.ErrNotHeld, redlock.ErrClosed),
		"invalid": redlock.ErrInvalid, "canceled": context.DeadlineExceeded, "error": errors.New("another"),
	} {
		if got := observe.Result(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
		if err != nil && want != "canceled" && want != "error" {
			if got := observe.Result(fmt.Errorf("more: %w", &redlock.QuorumError{Reason: err})); got != want {
				t.Errorf("wrapped %v is %q, want %q", err, got, want)
			}
		}
	}
	both := errors.Join(context.DeadlineExceeded, redlock.ErrHeld) // a wait that ended
	if got := observe.Result(both); got != "held" {
		t.Errorf("%v is %q", both, got)
	}
}
