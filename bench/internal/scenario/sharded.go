package scenario

import (
	"fmt"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// groupMasters is how many masters each group of the scenario sharded has; two groups have to fit into the fleet.
const groupMasters = 3

// sharded compares one group of masters with two, between which the same keys are spread. Two groups can do twice as
// much where the masters limit; where all share one machine with the client, the rows show what spreading costs.
func sharded(e *Env) ([]group, error) {
	if e.Fleet.Len() < 2*groupMasters {
		return nil, fmt.Errorf("%w: two groups need %d masters, there are %d", ErrSkipped, 2*groupMasters, e.Fleet.Len())
	}
	var groups []group
	for _, w := range e.workersOr(16, 128) {
		g := group{workers: w, masters: groupMasters}
		for n, kind := range []string{"one group", "two groups"} {
			s := subject.Sharded(groupMasters)
			entry, err := e.entry(s, (n+1)*groupMasters, e.cycles(s, w))
			if err != nil {
				return nil, err
			}
			entry.kind = kind
			g.entries = append(g.entries, entry)
		}
		groups = append(groups, g)
	}
	return groups, nil
}
