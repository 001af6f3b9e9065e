package workload

import "context"

// Vote is what one master said in one round.
type Vote uint8

// The votes.
const (
	VoteGranted Vote = iota
	VoteRefused
	// VoteUnknown: an error or a timeout; the request may have taken effect.
	VoteUnknown
)

// VoteTeller is a Subject that can tell what each master said to it.
type VoteTeller interface {
	// OpenTelling is Subject.Open. The client calls tell for every vote that it asked a master for in order to acquire or
	// to extend, also for one that came too late to count; master is an index of addrs. tell may be called concurrently,
	// and does not block.
	OpenTelling(ctx context.Context, addrs []string, tell func(master int, v Vote)) (Locker, error)
}
