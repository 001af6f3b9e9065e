package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock"
)

// aboveVariable holds the IDs of all locks that a command runs under, separated by blanks. They are no secret.
const aboveVariable = "REDLOCK_ABOVE"

// above are the IDs of the locks that this program runs under.
func above() []string { return strings.Fields(os.Getenv(aboveVariable)) }

// forItself returns an error if a wait for the lock would never end, because the lock's holder waits for this program.
// It returns nil if it can't tell.
func (w *wait) forItself(ctx context.Context, err error) error {
	ids := above()
	if len(ids) == 0 || !errors.Is(err, redlock.ErrHeld) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	isAbove := func(key string) bool {
		h, err := w.locker.Holder(ctx, key)
		return err == nil && h.Held && h.Holds == 1 && slices.Contains(ids, h.ID)
	}
	t := w.taker
	if t.permits > 0 {
		for slot := range t.permits {
			if !isAbove(fmt.Sprintf(slotForm, t.keys[0], slot)) {
				return nil
			}
		}
		return runsUnder("every permit of", t.keys[0], err)
	}
	if i := slices.IndexFunc(t.keys, isAbove); i >= 0 {
		return runsUnder("a lock on", t.keys[i], err)
	}
	return nil
}

func runsUnder(what, key string, err error) error {
	text := fmt.Sprintf("this command runs under %s %s, and would wait for itself", what, quotedKey(key))
	return &heldError{text, err}
}
