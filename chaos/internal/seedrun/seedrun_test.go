package seedrun_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/seedrun"
)

func TestARunThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		if seedrun.Ends(func() { <-block }) {
			t.Error("a run that waits for ever counts as ended")
		}
		close(block)
		if !seedrun.Ends(func() { <-time.After(time.Second) }) {
			t.Error("a run of a second does not count as ended")
		}
	})
}
