package scenario

import (
	"fmt"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// groupMasters is how many masters each group of the scenario sharded has.
const groupMasters = 3

// groupCounts are the numbers of groups that it goes through, as far as there are masters for them.
var groupCounts = []struct {
	n    int
	kind string
}{{1, "one group"}, {2, "two groups"}, {4, "four groups"}, {8, "eight groups"}}

// sharded compares one group of masters with several, between which the same keys are spread. Several can do several times as
// much where the masters limit. Where all share one machine with the client, what can be seen is what a cycle costs each master of the
// group that it asks, and the client: if that is the same however many groups there are, groups on machines of their own add up.
func sharded(e *Env) ([]group, error) {
	if e.Fleet.Len() < 2*groupMasters {
		return nil, fmt.Errorf("%w: two groups need %d masters, there are %d", ErrSkipped, 2*groupMasters, e.Fleet.Len())
	}
	var groups []group
	for _, w := range e.workersOr(16, 128) {
		g := group{workers: w, masters: groupMasters}
		for _, count := range groupCounts {
			if count.n*groupMasters > e.Fleet.Len() {
				e.Logf("sharded: left out %s, there are %d masters", count.kind, e.Fleet.Len())
				continue
			}
			s := subject.Sharded(groupMasters)
			entry, err := e.entry(s, count.n*groupMasters, e.costs(s, w, groupMasters))
			if err != nil {
				return nil, err
			}
			entry.kind = count.kind
			g.entries = append(g.entries, entry)
		}
		groups = append(groups, g)
	}
	return groups, nil
}
