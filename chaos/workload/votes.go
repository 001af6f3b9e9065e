package workload

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
)

// Vote is the answer of one master in one round.
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
	// Op is the requested operation: one of the constants.
	Op string
	// Keys are the keys of the request.
	Keys []string
	// Owner is the owner value in the request, if the subject knows it. Without it, a vote belongs
	// to the attempt that its client made for its key at that time.
	Owner string
	Vote  Vote
	// Took is the time from the beginning of the round to the vote.
	Took time.Duration
}

// VoteTeller is a Subject that can report each master's answers.
type VoteTeller interface {
	// OpenTelling is [Open], and the client also reports votes. It calls tell at once for every vote that it requested
	// from a master, even if the vote came too late to count. tell may be called concurrently, and does not block.
	OpenTelling(ctx context.Context, masters []endpoint.Endpoint, tell func(Ballot)) (Locker, error)
}
