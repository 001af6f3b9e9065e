package locktest

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/schedule"
)

// NewLane makes a lane that is closed with the test; its goroutines have ended then.
func NewLane(tb testing.TB, master lane.Master) *lane.Lane {
	tb.Helper()
	var group errgroup.Group
	queue := lane.New(master, group.Go, schedule.AfterFunc)
	tb.Cleanup(func() {
		queue.Close()
		Must(tb, group.Wait())
	})
	return queue
}
