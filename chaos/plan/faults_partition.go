package plan

import (
	"cmp"
	"time"

	"github.com/seed-624411e5/redlock/chaos/network"
)

// Flapping is the partition that comes and goes while it lasts; the others stay.
const Flapping = "flapping"

// shaped is a matrix that is the same whatever the step names.
func shaped(f func(clients, masters int) network.Matrix) func(Step, int, int) network.Matrix {
	return func(_ Step, clients, masters int) network.Matrix { return f(clients, masters) }
}

func isolateMasters(s Step, clients, masters int) network.Matrix {
	return network.IsolateMasters(clients, masters, OrAll(s.Masters, 1))
}

// partitionFaults silence paths by a pattern.
func partitionFaults() []Fault {
	faults := []Fault{
		{
			Name: "isolate-client", Text: "clients can reach no master",
			matrix: func(s Step, clients, masters int) network.Matrix {
				return network.IsolateClients(clients, masters, OrAll(s.Clients, 1))
			},
		},
		{Name: "isolate-master", Text: "masters can be reached by no client", matrix: isolateMasters},
		{
			Name: "minority-lost", Text: "every client misses as many masters as it can",
			matrix: shaped(network.MinorityLost),
		},
		{Name: "majority-lost", Text: "every client misses one master too many", matrix: shaped(network.MajorityLost)},
		{
			Name: "different-majorities", Text: "every client sees a bare majority, neighbours different ones",
			matrix: shaped(network.DifferentMajorities),
		},
		{
			Name: "bridge", Text: "two halves of the clients see majorities that share one master",
			matrix: shaped(network.Bridge),
		},
		{Name: "ring", Text: "every client misses one master, the next client the next", matrix: shaped(network.Ring)},
		{
			Name: Flapping, Text: "the paths to some masters come and go, every period", matrix: isolateMasters,
			Check: func(s *Step) error {
				s.Period = cmp.Or(s.Period, Duration(200*time.Millisecond))
				if s.Period < Duration(10*time.Millisecond) {
					return badNumber("period", "%v is below 10ms", time.Duration(s.Period))
				}
				return nil
			},
		},
	}
	for i := range faults {
		faults[i].Where, faults[i].Lasts = OnPartition, true
	}
	return faults
}
