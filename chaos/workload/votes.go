package workload

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
)

// Vote is what one master said in one round.
type Vote uint8

// The votes.
const (
	VoteGranted Vote = iota
	VoteRefused
	// VoteUnknown: an error or a timeout; the request may have taken effect.
	VoteUnknown
)

// String is the vote in a word.
func (v Vote) String() string {
	switch v {
	case VoteGranted:
		return "granted"
	case VoteRefused:
		return "refused"
	default:
		return "unknown"
	}
}

// The operations of a [Ballot].
const (
	OpAcquire = "acquire"
	OpExtend  = "extend"
	OpRelease = "release"
)

// Ballot is one master's vote in one round.
type Ballot struct {
	// Master is an index of the masters that the client was opened with.
	Master int
	// Op is what was asked for: one of the constants.
	Op string
	// Keys are what it was asked about.
	Keys []string
	// Owner is the value for which it was asked, where the subject can tell; without, a vote is put to the attempt of its client
	// and key that was under way.
	Owner string
	Vote  Vote
	// Took is the time from the beginning of the round to the vote.
	Took time.Duration
}

// VoteTeller is a Subject that can tell what each master said to it.
type VoteTeller interface {
	// OpenTelling is [Open]. The client calls tell for every vote that it asked a master for, at once, also for one that
	// came too late to count. tell may be called concurrently, and does not block.
	OpenTelling(ctx context.Context, masters []endpoint.Endpoint, tell func(Ballot)) (Locker, error)
}
