// Package clients runs the clients of a lock. It gives them other masters and other clocks, stops them and ends them.
package clients

import (
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Clients are the clients of one run.
type Clients struct {
	Recorder *history.Recorder
	Lockers  []workload.Locker    // by client; nil for clients that are processes of the harness
	Gates    []*workload.Gate     // by client
	Clocks   []workload.WallClock // by client
	Children *Children
	Members  *Members // nil: clients have the same masters all the time
}
