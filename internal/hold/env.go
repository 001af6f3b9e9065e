package hold

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/retention"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

// Env is the common part of the holds of one Locker.
type Env struct {
	Rules
	Host
	Watch // nil without an observer
	Clock

	Sets     []Set // of masters that decide
	Lanes    []*lane.Lane
	Prepare  func(*single.Request) // before a request is sent; called with the mutex held
	Identity string

	Schedule *schedule.Schedule
	Renewals *Renewals
	Janitor  *janitor.Janitor
	Registry *Registry[*Hold]
	Tokens   Tokens
	Retained retention.Keys
	spare    sync.Pool // of *roundWait
}

// Clock has the time of one process, and its source of chance.
type Clock struct {
	Now    func() time.Duration
	After  func(time.Duration, func()) schedule.Timer
	Jitter func(most time.Duration) time.Duration
}

// Set is one set of masters that decides by quorum: bit i of Members is the i-th master.
type Set struct {
	Name    string // "old" or "new" of two sets, "" of the only one
	Members uint64
	Quorum  int
}

// Of returns the number of the given masters that belong to the set.
func (s *Set) Of(masters uint64) int { return bits.OnesCount64(masters & s.Members) }

// Masters returns the number of masters in the set.
func (s *Set) Masters() int { return s.Of(EveryMaster) }

// Spare returns the number of masters that a quorum can do without.
func (s *Set) Spare() int { return s.Masters() - s.Quorum }

// AnyMajority reports that masters contain a quorum of one of the sets.
func (e *Env) AnyMajority(masters uint64) bool {
	return slices.ContainsFunc(e.Sets, func(s Set) bool { return s.Of(masters) >= s.Quorum })
}

// Votes are the votes of one round: a bit for each master that has voted.
type Votes struct{ Granted, Refused, Unknown uint64 }

// Vote is one master's vote.
type Vote uint8

// The votes. Pending: the master has not voted.
const (
	Pending Vote = iota
	Granted
	Refused
	Unknown
)

// Add enters the vote of master i.
func (t *Votes) Add(i int, v Vote) {
	switch v {
	case Granted:
		t.Granted |= 1 << i
	case Refused:
		t.Refused |= 1 << i
	case Unknown:
		t.Unknown |= 1 << i
	}
}

// Verdict is the result of the votes so far.
type Verdict uint8

// The verdicts.
const (
	Open     Verdict = iota // wait for more votes
	Won                     // a quorum granted, in every set
	Denied                  // no quorum, because masters refused
	NoQuorum                // no quorum, because too few masters answered
)

// Rules say how votes and time decide. They are pure, and called with the mutex held.
type Rules interface {
	Judge(single.Op, Votes) Verdict
	Decisive(*Facts) (set int) // the first set that a round's verdict comes from
	Inspected(Votes, []Answer) Verdict
	Majority(masters uint64) bool // a quorum of every set

	ValidUntil(start, ttl time.Duration) time.Duration // how long a key asked for at start is sure to be there
	Lapsed(now, ttl time.Duration) time.Duration       // when a key that is there now is sure to be gone
	Later(t, d time.Duration) time.Duration            // the sum, which does not overflow
	Allowance(ttl time.Duration) time.Duration         // the part of a ttl that clocks of different rates cost
	Outlives(left time.Duration) time.Duration         // the shortest ttl that keeps a key for so long
}

// Host is what holds ask of their Locker. No mutex is held when they do.
type Host interface {
	// Current reports since when the configuration of masters is known to be current, and whether it still is.
	Current() (asOf time.Duration, fresh bool)
	// Offer passes the lock on to a goroutine that waits for it, and reports whether there is one. Passed then wakes
	// it.
	Offer(*Offer) bool
	Passed(*Offer)
	// NotPassed is called when the lock will not be passed on, although its window lasts until then.
	NotPassed(key string, ends time.Duration)
	// Leaving is called before the keys are released. It returns the keys that nobody in this process waits for, and
	// for how long the release keeps the keys for the waiter that it notifies.
	Leaving(Exit) (unclaimed []string, reserve time.Duration)
	// Gone is called when the release of a hold that was held is decided.
	Gone(Gone)
	// Depart takes the process out of the queues of keys on these masters, behind the requests of a hold unless that is
	// nil.
	Depart(t *Terms, keys []string, behind *Hold, masters uint64)
}

// Handle is the owner of a hold. Over is called without the mutex, and the others with it: they must not wait, nor ask
// the hold.
type Handle interface {
	Over(reason error)                             // the hold is over
	Reason(why Why, lost *Result) error            // says why the hold is over; lost is the extension that found out
	Answered(c *lane.Call, refused bool)           // one master has answered, or not
	Patience(took time.Duration) (d time.Duration) // for how long an acquisition waits for late masters; 0: no limit
}

// Watch learns what happens, in this order. The mutex is held, except for Decided, PassedOn and NotRenewed.
type Watch interface {
	Voted(*Facts, int, Vote, error)
	Decided(*Facts)
	Lost(h *Hold, reason error, held time.Duration)
	HandedOver(h *Hold, held time.Duration)
	PassedOn(h *Hold, held time.Duration) // to another goroutine, which is woken next
	NotRenewed(*Hold)                     // a renewal was not sent: the configuration is not known to be current
}

// Terms are the options of an acquisition. Only Sent changes once it has begun.
type Terms struct {
	Keys        []string // as the masters have them, sorted
	Within      string   // the hold that it is under, of a reader
	TTL         time.Duration
	Timeout     time.Duration // of one request
	Sent        time.Time     // when the first request of the first attempt was sent
	MaxHold     time.Duration // 0: no limit
	MinHold     time.Duration // for how long the keys are kept though they are released
	MaxRenewals int           // 0: no limit
	Grace       time.Duration // by how much the hold is over before its validity ends
	Kind        single.Kind
	Fenced      bool
	Publishes   bool // its token and value, in its owner value
	Renew       bool
	Elects      bool // it is a term of an election
}

// Passable reports that a lock on these terms may be passed on. That is false if the key has to stay for a while
// after its release, or if the key identifies its holder: one that publishes, and one of a term of an election.
func (t *Terms) Passable() bool {
	return t.Kind == single.Plain && len(t.Keys) == 1 && !t.Publishes && !t.Elects && t.MinHold == 0
}

// Window is how long a lock on these terms may be passed on while others wait behind it.
func (t *Terms) Window() time.Duration {
	if !t.Passable() {
		return 0
	}
	return min(t.TTL/windowShare, maxWindow)
}

// Facts describe a round.
type Facts struct {
	Hold     *Hold
	Op       single.Op
	Verifies bool // an extension that only asks whether the key is there
	Keys     []string
	Start    time.Duration // the clock before the first byte was sent
	Votes    Votes
	Verdict  Verdict
}

// Result is how a round has gone that was not won, or that asked for facts.
type Result struct {
	Facts
	Sent    time.Time // when its first request was sent
	Since   time.Time // when the first request was sent on which its operation depends
	Answers []Answer  // one for each master
}

// Answer is one master's part in a Result.
type Answer struct {
	Vote    Vote
	Ended   bool // the request is over, so that the rest may be read
	Unknown bool // it was granted, and does not count: the key was set again, and it is not known when
	Err     error
	Reply   single.Reply
}

// Fault is why an operation of a hold has failed.
type Fault uint8

// The faults.
const (
	Cancelled  Fault = iota // the context has ended
	Ended                   // the hold is over
	Closed                  // the Locker was shut down
	Refusal                 // another owner has the key
	Absent                  // the masters do not have the key that was to be continued
	Unreached               // too few masters answered
	Late                    // granted, but too late to be of use
	OtherToken              // masters have given another token than was asked for
	LastToken               // the fencing counter has reached the greatest token
)

// Failure is why an operation of a hold has failed.
type Failure struct {
	Fault    Fault
	Op       single.Op
	Verifies bool    // an extension that only asks whether the keys are there
	Result   *Result // of the faults from Refusal to Late
}
