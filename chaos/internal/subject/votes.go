package subject

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/single"
)

// OpenTelling implements workload.VoteTeller.
func (s Redlock) OpenTelling(ctx context.Context, masters []endpoint.Endpoint,
	tell func(workload.Ballot),
) (workload.Locker, error) {
	return s.telling(masters, tell).OpenSecured(ctx, masters)
}

// telling returns the same subject with clients that report the votes of these masters.
func (s Redlock) telling(masters []endpoint.Endpoint, tell func(workload.Ballot)) Redlock {
	numbers := make(map[string]int, len(masters)) // a dialled master goes by its address
	for i, m := range masters {
		numbers[m.Addr] = i
	}
	also := s.Options.Observer
	s.Options.Observer = func(e redlock.Event) {
		if also != nil {
			also(e)
		}
		i, known := numbers[e.Master]
		if e.Kind != redlock.EventVote || !known ||
			!slices.Contains([]string{workload.OpAcquire, workload.OpExtend, workload.OpRelease}, e.Op) {
			return
		}
		b := workload.Ballot{Master: i, Op: e.Op, Keys: strings.Split(e.Key, ","), Took: e.Took}
		switch {
		case errors.Is(e.Err, single.ErrBehind):
			return // it was not asked
		case e.Vote == redlock.Granted:
			b.Vote = workload.VoteGranted
		case e.Vote == redlock.Refused:
			b.Vote = workload.VoteRefused
		case e.Vote == redlock.Unknown:
			b.Vote = workload.VoteUnknown
		default:
			return
		}
		tell(b)
	}
	return s
}
