package sim

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/single"
)

// Counts say how often each event happened in the runs. A run without difficult events proves nothing. The page
// docs/evidence/interleavings.md names all but those with the tag page:"-", and a test compares them.
type Counts struct {
	Acquired   int `json:"acquired" page:"-"`
	Fenced     int `json:"fenced" page:"-"`
	Shared     int `json:"shared" page:"-"`
	Exclusive  int `json:"exclusive" page:"-"` // writers and reentrant holds
	ManyKeys   int `json:"many_keys" page:"-"`
	Extended   int `json:"extended" page:"-"`
	Renewed    int `json:"renewed" page:"-"`
	Contended  int `json:"contended" page:"-"`   // attempts that found the key held
	Split      int `json:"split"`                // rounds that got some masters, but too few, while others got the rest
	NoQuorum   int `json:"no_quorum" page:"-"`   // attempts that could not reach a quorum
	Expired    int `json:"expired"`              // attempts that were granted too late
	Ended      int `json:"ended" page:"-"`       // Done closed before a release
	Lost       int `json:"lost" page:"-"`        // holds under renewal that were lost
	Passed     int `json:"passed" page:"-"`      // holds that were passed on by one that was released
	WithTokens int `json:"with_tokens" page:"-"` // of these with a token each
	Repaired   int `json:"repaired"`             // keys set again by an extension
	Unanswered int `json:"unanswered"`           // requests that timed out
	HeldBack   int `json:"held_back" page:"-"`   // messages that were lost or cut off, first time
	Spikes     int `json:"spikes" page:"-"`      // messages that took far longer than usual
	Stragglers int `json:"stragglers"`           // acquires that ended after their round
	LateServed int `json:"late_served"`          // requests served after their sender had abandoned the request
	Repeated   int `json:"repeated"`             // requests served twice
	Discarded  int `json:"discarded" page:"-"`   // requests that a reset took away
	Guarded    int `json:"guarded"`              // requests turned away by a master that had restarted
	Called     int `json:"called" page:"-"`      // messages to waiters
	Pauses     int `json:"pauses" page:"-"`      // of clients
	Refusing   int `json:"refusing" page:"-"`    // requests that a master refused, whatever they were
	Denied     int `json:"denied"`               // requests refused because a master had no memory
	Dialled    int `json:"dialled" page:"-"`     // connections that were to be made
	Redialled  int `json:"redialled"`            // without any reply for a second
	Faults     int `json:"faults" page:"-"`
	Old        int `json:"old" page:"-"`       // holds of clients with the old set of masters
	Both       int `json:"both" page:"-"`      // with both
	New        int `json:"new" page:"-"`       // with the new one
	Announced  int `json:"announced" page:"-"` // exchanges that did not wait for old clients before the second part
	Outdated   int `json:"outdated" page:"-"`  // attempts of those that were refused because of it
	Bridged    int `json:"bridged" page:"-"`   // keys with tokens of an old client, one with both sets, then a new one

	// Acquisitions.
	TriedAgain int `json:"tried_again"`  // further rounds of attempts that do not wait
	ReadLate   int `json:"read_late"`    // replies to acquires that came after their sender had stopped waiting
	CutShort   int `json:"cut_short"`    // calls that were cancelled while a request was in flight
	LateGrants int `json:"late_grants"`  // acquires that a master granted after their round had been decided
	Refused    int `json:"refused"`      // acquires that a master refused
	Mixed      int `json:"mixed"`        // attempts that some masters refused while others did not answer
	OneSet     int `json:"one_set"`      // attempts that were lost in one of two sets of masters
	Graceless  int `json:"graceless"`    // attempts that were granted with less than their grace left
	DownAtOnce int `json:"down_at_once"` // attempts with a request that failed unsent: its master counts as down

	// Extensions.
	Overtook       int `json:"overtook"`                 // extensions that left while an earlier one was overdue
	ExtendedLate   int `json:"extended_late"`            // answers to an extension came after the old bound
	Shorter        int `json:"shorter"`                  // requests to extend by less than the remaining time
	MajorityGone   int `json:"majority_gone"`            // holds that ended early, because a majority had lost them
	PartlyGone     int `json:"partly_gone"`              // extensions that some refused while too few others answered
	RepairSilent   int `json:"repair_silent"`            // repairs that were not answered
	RepairedBeside int `json:"repaired_beside" page:"-"` // repairs of a key that others hold, too
	KeptOn         int `json:"kept_on"`                  // extensions that failed, and the hold went on
	Joined         int `json:"joined"`                   // extensions asked for while another was under way
	PutOff         int `json:"put_off"`                  // extensions of a renewed hold by less than a renewal
	ReleasedAmid   int `json:"released_amid"`            // releases while a repair was under way
	Graced         int `json:"graced"`                   // Done closed by itself, before the bound
	WonInGrace     int `json:"won_in_grace"`             // extensions granted between Done and the bound
	LateTimer      int `json:"late_timer"`               // extensions won when Done should have closed already
	AtBound        int `json:"at_bound"`                 // extensions that were under way at the bound

	// Tokens.
	Raised          int `json:"raised"`           // requests for another token than the first round gave
	RaiseRefused    int `json:"raise_refused"`    // of these that others were ahead of
	SameNumber      int `json:"same_number"`      // requests for a number that a counter had reached just then
	RaisedBoth      int `json:"raised_both"`      // requests for another token with two sets of masters
	FencedAgain     int `json:"fenced_again"`     // fenced acquires that were repeated
	BetweenTwo      int `json:"between_two"`      // a counter was raised between the two commands of another's acquire
	StoodStill      int `json:"stood_still"`      // the key had gone between them
	BrokenBetween   int `json:"broken_between"`   // the connection broke between them
	Retained        int `json:"retained"`         // fenced acquires without the script
	CounterLost     int `json:"counter_lost"`     // of these that found no counter
	LateTokens      int `json:"late_tokens"`      // stragglers that gave a greater token than the hold's
	CounterRepaired int `json:"counter_repaired"` // repairs on a master that had lost the counter

	// Waiting.
	Unheard      int `json:"unheard"`       // notifications for a client that does not listen there
	NotifiedDead int `json:"notified_dead"` // notifications for a client that has died
	Divided      int `json:"divided"`       // releases that made masters notify different clients
	LeftQueue    int `json:"left_queue"`    // waiters taken out of a queue
	GaveWay      int `json:"gave_way"`      // acquisitions by a client that has just notified another by its release
	Polite       int `json:"polite"`        // acquires that respect a reservation
	KeptOut      int `json:"kept_out"`      // acquires of readers refused because of a writer's claim

	// Neighbours.
	QuietHolds int `json:"quiet_holds" page:"-"` // renewed holds that no other client wanted, judged
	QuietFree  int `json:"quiet_free" page:"-"`  // acquisitions of keys that no other client wanted, judged
	Crowded    int `json:"crowded" page:"-"`     // members of crowds
	Retold     int `json:"retold" page:"-"`      // messages that a blip lost
	Queued     int `json:"queued" page:"-"`      // requests that waited for others to be served

	// Masters and clients that stop and begin again.
	RolledBack int `json:"rolled_back" page:"-"` // restarts with less than there had been
	Loading    int `json:"loading" page:"-"`     // requests that met a master which loads its data
	Suspended  int `json:"suspended" page:"-"`   // timers that were late because of a suspension
	Long       int `json:"long" page:"-"`        // holds that lasted for a hundred ttls
}

// Add adds another run's counts.
func (c *Counts) Add(o Counts) {
	mine, its := reflect.ValueOf(c).Elem(), reflect.ValueOf(o)
	for i := range mine.NumField() {
		mine.Field(i).SetInt(mine.Field(i).Int() + its.Field(i).Int())
	}
}

// rows are the counts that the page of interleavings names, by these names.
func (c *Counts) rows() map[string]int {
	rows := make(map[string]int)
	for f, v := range reflect.ValueOf(c).Elem().Fields() {
		if f.Tag.Get("page") != "-" {
			rows[countName(f)] = int(v.Int())
		}
	}
	return rows
}

// Unseen returns the names of the interleavings that did not happen.
func (c *Counts) Unseen() []string {
	rows := c.rows()
	maps.DeleteFunc(rows, func(_ string, seen int) bool { return seen > 0 })
	return slices.Sorted(maps.Keys(rows))
}

func countName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// acquired counts a hold by its kind and by its session's set of masters.
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

// lost counts a round that was not won, by its cause.
func (c *Counts) lost(q *redlock.QuorumError) {
	if errors.Is(q, redlock.ErrContended) || q.Granted > 0 && errors.Is(q, redlock.ErrHeld) {
		c.Split++
	}
	if q.Set != "" {
		c.OneSet++
	}
	if votes(q, redlock.Refused) > 0 && votes(q, redlock.Unknown) > 0 {
		c.Mixed++
	}
	if slices.ContainsFunc(q.Nodes, func(n redlock.NodeResult) bool { return errors.Is(n.Err, single.ErrDown) }) {
		c.DownAtOnce++
	}
}

func votes(q *redlock.QuorumError, v redlock.Vote) (n int) {
	for i := range q.Nodes {
		if q.Nodes[i].Vote == v {
			n++
		}
	}
	return n
}

// failed counts why an attempt got nothing.
func (c *Counts) failed(err error) {
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok {
		c.lost(q)
	}
	switch {
	case errors.Is(err, redlock.ErrHeld), errors.Is(err, redlock.ErrContended):
		c.Contended++
	case errors.Is(err, redlock.ErrNoQuorum):
		c.NoQuorum++
	case errors.Is(err, redlock.ErrExpired):
		c.Expired++
	case errors.Is(err, redlock.ErrOutdated):
		c.Outdated++
	}
}
