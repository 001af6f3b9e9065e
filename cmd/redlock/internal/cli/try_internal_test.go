package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-624411e5/redlock"
)

// A job that nobody was seen to run is not one that runs elsewhere: the status of -E is not for it.
func TestHazard103ASplitVoteHasItsOwnStatus(t *testing.T) {
	for want, err := range map[int]error{
		7:               &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrHeld},
		statusContended: &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrContended},
		statusNoQuorum:  &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrNoQuorum},
	} {
		for _, quiet := range []bool{false, true} {
			taker := &taker{lockFlags: lockFlags{conflictStatus: 7, quiet: quiet}}
			err := taker.conflict(fmt.Errorf("more: %w", err))
			got := statusOf(err)
			if s, ok := errors.AsType[*statusError](err); ok {
				got = s.status
			}
			if got != want {
				t.Errorf("quiet %t: %v ends with %d, want %d", quiet, err, got, want)
			}
		}
	}
}
