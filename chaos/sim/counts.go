package sim

import (
	"errors"
	"reflect"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/single"
)

// Counts say what happened in runs: a run in which nothing difficult happened proves nothing.
type Counts struct {
	Acquired   int `json:"acquired"`
	Fenced     int `json:"fenced"`
	Shared     int `json:"shared"`
	Exclusive  int `json:"exclusive"` // writers and reentrant holds
	ManyKeys   int `json:"many_keys"`
	Extended   int `json:"extended"`
	Renewed    int `json:"renewed"`
	Contended  int `json:"contended"`   // attempts that found the key held
	Split      int `json:"split"`       // rounds that got some masters, but too few, while others got the rest
	NoQuorum   int `json:"no_quorum"`   // attempts that could not reach a quorum
	Expired    int `json:"expired"`     // attempts that were granted too late
	Ended      int `json:"ended"`       // holds whose Done closed before a release
	Lost       int `json:"lost"`        // holds under renewal that were lost
	Passed     int `json:"passed"`      // holds that were passed on by one that was released
	WithTokens int `json:"with_tokens"` // of these with a token each
	Repaired   int `json:"repaired"`    // keys set again by an extension
	Unanswered int `json:"unanswered"`  // requests whose time was up
	HeldBack   int `json:"held_back"`   // messages that were lost or cut off, first time
	Spikes     int `json:"spikes"`      // messages that took far longer than usual
	Stragglers int `json:"stragglers"`  // acquires that ended after their round
	LateServed int `json:"late_served"` // requests served after their sender had given up
	Repeated   int `json:"repeated"`    // requests served twice
	Discarded  int `json:"discarded"`   // requests that a reset took away
	Guarded    int `json:"guarded"`     // requests turned away by a master that had restarted
	Called     int `json:"called"`      // messages to waiters
	Pauses     int `json:"pauses"`      // of clients
	Refusing   int `json:"refusing"`    // requests that a master refused, whatever they were
	Denied     int `json:"denied"`      // requests for which a master had no memory
	Dialled    int `json:"dialled"`     // connections that were to be made
	Redialled  int `json:"redialled"`   // of which nothing was heard for a second
	Faults     int `json:"faults"`
	Old        int `json:"old"`       // holds of clients with the old set of masters
	Both       int `json:"both"`      // with both
	New        int `json:"new"`       // with the new one
	Announced  int `json:"announced"` // exchanges whose second part did not wait for old clients
	Outdated   int `json:"outdated"`  // attempts of those that were refused because of it
	Bridged    int `json:"bridged"`   // keys whose tokens went from an old client's over one's with both sets to a new one's
}

// Add adds another run's counts.
func (c *Counts) Add(o Counts) {
	mine, its := reflect.ValueOf(c).Elem(), reflect.ValueOf(o)
	for i := range mine.NumField() {
		mine.Field(i).SetInt(mine.Field(i).Int() + its.Field(i).Int())
	}
}

// acquired counts a hold by its kind, and by whose it is.
func (c *Counts) acquired(s *Session, sets Sets) {
	c.Acquired++
	switch sets {
	case OldSet:
		c.Old++
	case BothSets:
		c.Both++
	case NewSet:
		c.New++
	}
	switch {
	case s.Kind == history.Fenced:
		c.Fenced++
	case s.Kind == history.Shared:
		c.Shared++
	case s.Kind == history.Reentrant, s.Kind == history.Exclusive:
		c.Exclusive++
	case len(s.Keys) > 1:
		c.ManyKeys++
	}
}

// served counts what a master did.
func (c *Counts) served(reply single.Reply) {
	if reply.Outcome == single.Repaired {
		c.Repaired++
	}
}

// failed counts why an attempt got nothing.
func (c *Counts) failed(err error) {
	var q *redlock.QuorumError
	if errors.As(err, &q) && errors.Is(err, redlock.ErrHeld) && q.Granted > 0 {
		c.Split++
	}
	switch {
	case errors.Is(err, redlock.ErrHeld):
		c.Contended++
	case errors.Is(err, redlock.ErrNoQuorum):
		c.NoQuorum++
	case errors.Is(err, redlock.ErrExpired):
		c.Expired++
	case errors.Is(err, redlock.ErrOutdated):
		c.Outdated++
	}
}
