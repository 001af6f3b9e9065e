// Package clients has the clients of a run, and what can be done to them: other masters, other clocks, a stop, an end.
package clients

import (
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Clients are those of one run.
type Clients struct {
	Recorder *history.Recorder
	Lockers  []workload.Locker    // by client; nil for clients that are processes of the harness
	Gates    []*workload.Gate     // by client
	Clocks   []workload.WallClock // by client
	Children *Children
	Members  *Members // nil: clients have the same masters all the time
}
