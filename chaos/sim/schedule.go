package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Schedule is one run as data. Nothing but a Schedule decides what happens. Shrink may leave out each field that the
// encoding may omit. It makes fields with the tag shrink:"round" only rounder, and keeps those with shrink:"-".
type Schedule struct {
	// Seed decides everything that the other fields leave open: the delay and the fate of each
	// message, the jitter, and the order of events at one instant.
	Seed    uint64        `json:"seed"`
	Masters []MasterClock `json:"masters"`
	Clients []Client      `json:"clients"`
	// Exchange has one set of masters take another's place; nil: all clients have all masters.
	Exchange *Exchange      `json:"exchange,omitempty"`
	Net      Net            `json:"net"`
	Faults   []Fault        `json:"faults,omitempty"`
	Broken   BrokenVariants `json:"broken,omitzero"`
}

// BrokenVariants are the mistakes that negative controls make: a mutant of the engine, and some of its surroundings.
type BrokenVariants struct {
	// Mutant names the mutant that the program has to be built with; empty: none.
	Mutant string `json:"mutant,omitempty"`
	// PlainDelete makes every release delete the key, even if another owner has it.
	PlainDelete bool `json:"plain_delete,omitempty"`
	// FullDenies makes a full master refuse extensions, too.
	FullDenies bool `json:"full_denies,omitempty"`
	// NoGuard lets masters vote at once after a restart without their data.
	NoGuard bool `json:"no_guard,omitempty"`
	// NoWait lets clients with the new set of masters begin while holds of the old ones last.
	NoWait bool `json:"no_wait,omitempty"`
	// NotAnnounced suppresses the announcement of the generation that stops forgotten clients.
	NotAnnounced bool `json:"not_announced,omitempty"`
	// OneConnection delays every message of a client to a master until the messages lost before it have arrived.
	OneConnection bool `json:"one_connection,omitempty"`
}

// MasterClock is a master's own clock.
type MasterClock struct {
	// Offset is how far it is ahead at the beginning.
	Offset time.Duration `json:"offset,omitempty"`
	// PPM is how much faster than reference time it runs, in millionths.
	PPM int64 `json:"ppm,omitempty"`
	// Early has its keys end as the last millisecond of their ttl begins, as Redis 8.0 may, not when it is over.
	Early bool `json:"early,omitempty"`
}

// Client is one process with its own Locker.
type Client struct {
	// PPM is how much faster than reference time its clock runs, in millionths.
	PPM int64 `json:"ppm,omitempty"`
	// Wall is how far its time of day is ahead.
	Wall time.Duration `json:"wall,omitempty"`
	// Timeout is its request timeout; 0: the engine's own.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Sets are the masters that it has; empty unless there is an exchange.
	Sets Sets `json:"sets,omitempty"`
	// Tasks are goroutines that go through their sessions one after the other.
	Tasks [][]Session `json:"tasks"`
	// Crowds adds sessions for many goroutines.
	Crowds []Crowd `json:"crowds,omitempty"`
}

// Session is one acquisition and, if it succeeds, the life of the hold.
type Session struct {
	// Idle is the time before it begins.
	Idle time.Duration `json:"idle,omitempty"`
	// Second lets it begin in the second part of an exchange at the earliest, Idle later. It is of no meaning to old
	// clients, and all sessions of new ones are there.
	Second bool `json:"second,omitempty"`
	// Announce makes it no acquisition, but the announcement of the third generation, which is tried until it succeeds.
	Announce bool `json:"announce,omitempty" shrink:"-"`
	// Keys are numbers of keys. The session takes all of its keys or none.
	Keys []int        `json:"keys"`
	Kind history.Kind `json:"kind,omitempty"`
	// Job names the owner of a reentrant hold.
	Job int           `json:"job,omitempty"`
	TTL time.Duration `json:"ttl"`
	// Wait is how long the caller waits for the lock; 0: one attempt.
	Wait time.Duration `json:"wait,omitempty"`
	// Every is how often it tries while it waits; 0: as the engine does by itself.
	Every time.Duration `json:"every,omitempty"`
	// Quiet says that no other session wants its keys.
	Quiet bool `json:"quiet,omitempty"`
	// Renew asks for automatic renewal; MaxHold bounds the hold (0: not).
	Renew   bool          `json:"renew,omitempty"`
	MaxHold time.Duration `json:"max_hold,omitempty" shrink:"round"`
	// Grace is by how much Done closes before the bound; 0: the least that it can be.
	Grace time.Duration `json:"grace,omitempty"`
	// Extends are extensions by the holder.
	Extends []Extend `json:"extends,omitempty"`
	// Hold is for how long the holder keeps it after the last extension. Then it releases, unless it is to Leave: to
	// do nothing more.
	Hold  time.Duration `json:"hold"`
	Leave bool          `json:"leave,omitempty"`
}

// Extend is one extension, After the step before it.
type Extend struct {
	After time.Duration `json:"after"`
	TTL   time.Duration `json:"ttl"`
}

// Net is how messages fare when nothing is broken. Chances are in thousandths of a message.
type Net struct {
	// MinDelay and MaxDelay bound the delay of one message in one direction.
	MinDelay time.Duration `json:"min_delay" shrink:"-"`
	MaxDelay time.Duration `json:"max_delay" shrink:"-"`
	// Spike is the chance that a message takes up to SpikeDelay instead.
	Spike      int           `json:"spike,omitempty"`
	SpikeDelay time.Duration `json:"spike_delay,omitempty"`
	// LoseRequest and LoseReply are the chances that the first transmission is lost; the next follows after 200 ms if
	// the connection still exists.
	LoseRequest int `json:"lose_request,omitempty"`
	LoseReply   int `json:"lose_reply,omitempty"`
	// Reset is the chance that a connection breaks under a request.
	Reset int `json:"reset,omitempty"`
	// Repeat is the chance that a request is performed twice, the second time before the answer leaves.
	Repeat int `json:"repeat,omitempty"`
	// Stray makes repeated requests arrive long after the reply, and makes requests arrive late after their sender has
	// abandoned them. Clients cause this if they retry by themselves, or close connections without a reset.
	Stray bool `json:"stray,omitempty"`
	// Dials makes clients dial. If a connection broke, or its request was abandoned, a new connection takes a round
	// trip before the client can send. A lost packet of the handshake is sent again after a second.
	Dials bool `json:"dials,omitempty"`
	// Stagger is the greatest delay between the sends to the masters of one round.
	Stagger time.Duration `json:"stagger,omitempty"`
	// Service is a master's time for each command; it serves one after the other.
	Service time.Duration `json:"service,omitempty"`
}

// FaultKind is the kind of a fault.
type FaultKind string

// The faults. Those that end take For.
const (
	// CutRequests, CutReplies: messages of Client to (from) Master do not get through.
	CutRequests FaultKind = "cut-requests"
	CutReplies  FaultKind = "cut-replies"
	// Freeze: Master stops; it reads later arrivals when it resumes, in any order.
	Freeze FaultKind = "freeze"
	// Slow: messages of Master take Amount longer, in both directions.
	Slow FaultKind = "slow"
	// Crash: Master dies and restarts with its data. Forget: without; unless unguarded, it then does not vote
	// until every lock it may have forgotten has expired.
	Crash  FaultKind = "crash"
	Forget FaultKind = "forget"
	// Rollback: Master dies and restarts with its data of Amount ago, because it writes to its disk only now and then;
	// otherwise like Forget. If the master has restarted once already since then, nothing is lost.
	Rollback FaultKind = "rollback"
	// Refuse: Master answers every command with an error and does nothing, as when it can't set up
	// connections, still loads its data, or has become a replica.
	Refuse FaultKind = "refuse"
	// Full: Master has no memory for new keys. Existing keys can be extended and released.
	Full FaultKind = "full"
	// Blip: messages between Client and Master are lost, and sent again after Amount. Held locks must survive it.
	Blip FaultKind = "blip"
	// Step: Master's clock is set by Amount.
	Step FaultKind = "clock-step"
	// Pause: Client stands still. Suspend: so does its machine, and with it whatever its timers count. Kill: it dies.
	Pause   FaultKind = "pause"
	Suspend FaultKind = "suspend"
	Kill    FaultKind = "kill"
)

// All is the Client or Master of a fault that hits every client or master.
const All = -1

// Fault is one thing that breaks, and mends after For.
type Fault struct {
	Kind   FaultKind     `json:"kind"`
	At     time.Duration `json:"at"`
	For    time.Duration `json:"for,omitempty" shrink:"round"`
	Client int           `json:"client"`
	Master int           `json:"master"`
	Amount time.Duration `json:"amount,omitempty" shrink:"round"`
	// Loading is for how long Master answers LOADING after it has restarted: to a Crash, a Forget and a Rollback.
	Loading time.Duration `json:"loading,omitempty"`
	// Step, if not 0, replaces At for a Pause, a Suspend or a Kill: the fault begins right before
	// the client's step of that number. A step is a send, the arrival of a reply, the ring of a
	// timer, or the next piece of the client's own work.
	Step int `json:"step,omitempty"`
	// Unguarded lets a master that lost its data vote at once.
	Unguarded bool `json:"unguarded,omitempty"`
	// Second makes At count from the beginning of the second part of an exchange.
	Second bool `json:"second,omitempty"`
}

// timeout returns the timeout of the client's requests for locks with this ttl.
func (c *Client) timeout(ttl time.Duration) time.Duration {
	return cmp.Or(c.Timeout, min(max(ttl/20, 10*time.Millisecond), time.Second))
}

// minTimeout is the shortest timeout of a request.
func (s *Schedule) minTimeout() time.Duration {
	shortest := time.Second
	for i := range s.Clients {
		c := &s.Clients[i]
		for _, task := range c.all() {
			for k := range task {
				shortest = min(shortest, c.timeout(task[k].TTL))
			}
		}
	}
	return shortest
}

// maxTTL is the longest ttl that any session requests.
func (s *Schedule) maxTTL() time.Duration {
	return max(s.maxTTLOf(""), s.maxTTLOf(OldSet), s.maxTTLOf(BothSets), s.maxTTLOf(NewSet))
}

// maxTTLOf is the longest of clients with these sets of masters.
func (s *Schedule) maxTTLOf(sets Sets) time.Duration {
	longest := time.Duration(0)
	for _, c := range s.Clients {
		if c.Sets != sets {
			continue
		}
		for _, task := range c.all() {
			for i := range task {
				longest = max(longest, task[i].TTL)
				for _, x := range task[i].Extends {
					longest = max(longest, x.TTL)
				}
			}
		}
	}
	return longest
}

// all are the sessions of the client's tasks, and of its crowds.
func (c *Client) all() [][]Session {
	all := slices.Clip(c.Tasks)
	for i := range c.Crowds {
		for n := range c.Crowds[i].N {
			all = append(all, c.Crowds[i].sessions(n))
		}
	}
	return all
}

// keys is how many keys there are.
func (s *Schedule) keys() int {
	n := 1
	for _, c := range s.Clients {
		for _, task := range c.all() {
			for i := range task {
				for _, key := range task[i].Keys {
					n = max(n, key+1)
				}
			}
		}
	}
	return n
}
