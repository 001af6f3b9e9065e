package cli

import (
	"fmt"
	"testing"

	"github.com/seed-624411e5/redlock"
)

// If no process was seen to get the lock, the job may run nowhere. That is not the status of -E, which means that the
// job runs elsewhere.
func TestHazard103ASplitVoteHasItsOwnStatus(t *testing.T) {
	for want, err := range map[int]error{
		7:               &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrHeld},
		statusContended: &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrContended},
		statusNoQuorum:  &redlock.QuorumError{Op: "acquire", Key: "report", Reason: redlock.ErrNoQuorum},
	} {
		for _, quiet := range []bool{false, true} {
			taker := &taker{lockFlags: lockFlags{conflictStatus: 7, quiet: quiet}}
			err := taker.conflict(fmt.Errorf("more: %w", err))
			if got := asStatus(err).status; got != want {
				t.Errorf("quiet %t: %v ends with %d, want %d", quiet, err, got, want)
			}
		}
	}
}
