package controls

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Entry is a lock of the catalogue: [Textbook] with one difference. A nil field means the same as in Textbook.
type Entry struct {
	Name string
	// Text describes the defect in a sentence.
	Text string
	// Scenario is where it must be caught, Oracle by what, and For how long a run of it lasts.
	Scenario, Oracle string
	For              time.Duration
	// Sample marks one of those that every test run has; the command controls runs all.
	Sample bool

	// also are kinds of locks that it claims to have besides plain ones.
	also []history.Kind
	// quorum is how many masters it wants of so many, and few how many it asks at all.
	quorum func(masters int) int
	few    int
	// set asks a master for the key, and vote turns the master's answer into a vote.
	set  func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error)
	vote func(l *locker, master int, v vote) vote
	// careless has failed attempts leave keys to their ttl, and forgets has releases leave them on silent masters.
	careless, forgets bool
	// newOwner makes the value of the key, and owner the one that the lock reports.
	newOwner func(l *locker) string
	owner    func(owner string) string
	// acquire replaces Acquire.
	acquire func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error)
	// remaining, extend and release replace the operations of a hold.
	remaining func(left time.Duration) time.Duration
	extend    func(ctx context.Context, h workload.Hold, ttl time.Duration) error
	release   func(ctx context.Context, h workload.Hold) error
	// renew keeps a hold until ctx is done. Textbook has no renewal.
	renew func(ctx context.Context, h *alteredHold, ttl time.Duration)
	// token makes fencing tokens, which Textbook has none of.
	token func(l *locker, wall time.Time) uint64
	// done is the channel of a new hold; Textbook has none.
	done func(left time.Duration) <-chan struct{}
}

var errBroken = errors.New("controls: broken on purpose")

// Catalogue lists broken locks, each with the oracle that must find it.
func Catalogue() []Entry {
	return slices.Concat(counting(), keys(), attempts(), bounds(), extensions(), releases(), renewals(), tokens(),
		kinds(), growing())
}

// oneIn is true once in n times, by chance.
func oneIn(n int) bool { return rand.N(n) == 0 }

// Subject is the entry as a subject.
func (e *Entry) Subject() workload.Subject {
	if e.renew != nil {
		return renewing{altered{e, time.Now}}
	}
	return altered{e, time.Now}
}

// FindEntry returns the entry of that name.
func FindEntry(name string) (*Entry, error) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("controls: no broken lock %q in the catalogue", name)
	}
	return &all[i], nil
}
