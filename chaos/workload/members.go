package workload

import (
	"context"
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
)

// Membership says which masters a client has.
type Membership struct {
	// Sets are the masters of its locks: of one set, or of the old one and the new one while the one takes the other's
	// place. A lock of two sets must have a majority of each. A master of both has the same address in both.
	Sets [][]endpoint.Endpoint
	// Generation numbers the membership: clients begin with 1. The generations of any two clients that work, or still
	// hold a lock, differ by at most 1, unless the plan breaks the lock's assumptions.
	Generation uint64
}

// Members is a Subject with clients that can move from one set of masters to another while locks are held and wanted.
// For each membership the harness opens another client and uses it for all new requests. The previous client extends
// and releases its holds. The harness closes it when it has none left.
type Members interface {
	// OpenMembers is [Open] for a membership. The client calls tell as one of a [VoteTeller] does, if it can;
	// Ballot.Master is an index of all sets, one after the other, and for a master of both either will do.
	OpenMembers(ctx context.Context, m Membership, tell func(Ballot)) (Locker, error)
}

// Announcer is a client of a [Members] that tells its masters which generation comes next, so that they stop who was
// forgotten. The harness asks for that before a client goes on with new masters alone.
type Announcer interface {
	// Announce returns nil when a majority of each set knows it.
	Announce(ctx context.Context, generation uint64) error
}

// CheckMembers returns nil if the subject is a [Members], or an error that matches ErrUnsupported.
func CheckMembers(s Subject) error {
	if _, ok := s.(Members); ok {
		return nil
	}
	return fmt.Errorf("%w: %s can't go from one set of masters to another: implement workload.Members", ErrUnsupported,
		s.Name())
}
