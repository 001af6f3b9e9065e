package scenario

import (
	"fmt"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// groupMasters is how many masters each group of the scenario sharded has.
const groupMasters = 3

// groupCounts are the numbers of groups to measure, as far as there are enough masters.
var groupCounts = []struct {
	n    int
	kind string
}{{1, "one group"}, {2, "two groups"}, {4, "four groups"}, {8, "eight groups"}}

// sharded compares one group of masters with several groups that share the same keys. Where masters are the limit,
// several groups can do several times as much. If all share one machine with the client, look at the cost of a cycle
// for the client and for each master that it asks. If that cost is the same for any number of groups, groups on
// separate machines add up.
func sharded(e *Env) ([]group, error) {
	if e.Fleet.Len() < 2*groupMasters {
		return nil, fmt.Errorf("%w: two groups need %d masters, there are %d", ErrSkipped, 2*groupMasters,
			e.Fleet.Len())
	}
	groups := e.groups(e.workersOr(16, 128), nil, nil)
	for i := range groups {
		g := &groups[i]
		g.masters = groupMasters
		for _, count := range groupCounts {
			asked := count.n * groupMasters
			if asked > e.Fleet.Len() {
				e.Logf("sharded: left out %s, there are %d masters", count.kind, e.Fleet.Len())
				continue
			}
			g.entries = append(g.entries,
				entry{subject: subject.Sharded(groupMasters), kind: count.kind, asked: asked, run: e.costs})
		}
	}
	return groups, nil
}
