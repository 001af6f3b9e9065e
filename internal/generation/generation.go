// Package generation finds out whether a configuration of masters is current.
//
// Generations stop a forgotten process from taking locks with an old list of masters. Old and new sets need not share
// a quorum. So a process that has missed both steps of an exchange could hold a lock at the same time as a process
// that has made both. Therefore masters keep the greatest generation that they have received. A Locker takes and
// extends locks only under two conditions. It has asked a quorum of each of its sets for the generation, at most
// freshFor ago, and no answer was two or more ahead.
//
// Why that is enough: let a quorum of the old set have received n+2 by the time T ([Currency.Announce]). After T, every
// question of a Locker with generation n to a quorum of that set reaches one of these masters, and the Locker learns
// the new generation. So it asked for its last good answer before T, and its last round that takes or extends a lock
// begins before T+freshFor. Its locks are over after the longest ttl has passed as well. Clocks matter only because
// the Locker measures freshFor by its own clock: the drift allowance applies.
//
// These failures are possible:
//
//   - An answer comes late. It describes the time when the master gave it, which is after the question. So freshness
//     counts from before the first byte was sent.
//   - The process stops after it has found its configuration current and before it sends the round. So the validity
//     of such a round counts from the clock reading of that check ([State].AsOf).
//   - A master does not return from a call. It is no more waited for than in a round, and the next question does not
//     wait for the end of the last one.
//   - A master restarts without its data. It has forgotten the generation too, until a process that asks it tells it
//     again. If the new set does not contain this master, it is unknown which process does that and when. The restart
//     guard does not help, since locks end and a forgotten process does not. So while an old process may still run,
//     no master of the quorum that received the generation may come back empty.
package generation

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// freshFor is how long an answer holds. After askAgain the Locker asks again, so that a Locker in use does not
	// wait for the answer.
	freshFor = 10 * time.Second
	askAgain = 5 * time.Second
)

// Config has what a Currency needs of its Locker. Ended and Done are called with no mutex held, the other functions
// with one.
type Config struct {
	Own      uint64 // the generation of the configuration; 0: it has none, and nothing is asked
	Lanes    []*lane.Lane
	Timeout  time.Duration // of a request; masters that have not answered by then are not waited for
	Now      func() time.Duration
	Prepare  func(*single.Request)
	Majority func(masters uint64) bool          // a quorum of every set
	Decides  func(answered, failed uint64) bool // a quorum of every set has answered, or none can any more
	Asks     func()                             // before the first request of an announcement is sent
	Ended    func(c *lane.Call)                 // before an ended call counts
	Done     func()                             // after the last call of an announcement has ended
}

// Currency holds the knowledge about the generation of one configuration. It is safe for concurrent use.
type Currency struct {
	Config

	mu     sync.Mutex
	fresh  time.Duration // until when the last answer holds, by Now; 0: none came
	newer  *Newer        // stays set
	asking *Announcement // the latest; nil if there was none
}

// New returns a Currency that has not asked yet.
func New(c Config) *Currency { return &Currency{Config: c} }

// Newer is a generation that is in use and makes another one outdated.
type Newer struct {
	Generation uint64
	Master     int // that said so
}

// State is the knowledge at one time.
type State struct {
	AsOf  time.Duration // the time; what relies on the state counts from here
	Fresh bool          // locks may be taken and extended
	Newer *Newer        // why that is never allowed again, or nil
}

// State returns the knowledge now, and asks nobody.
func (c *Currency) State() State {
	if c.Own == 0 {
		return State{AsOf: math.MaxInt64, Fresh: true}
	}
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked(now)
}

func (c *Currency) stateLocked(now time.Duration) State {
	return State{now, c.newer == nil && now < c.fresh, c.newer}
}

// Ask returns the knowledge now and the question that is under way or due, if there is one. It does not wait for the
// answers.
func (c *Currency) Ask() (s State, asking *Announcement) {
	if c.Own == 0 {
		return c.State(), nil
	}
	now := c.Now()
	c.mu.Lock()
	s = c.stateLocked(now)
	if c.newer != nil || c.fresh > 0 && now < c.fresh-freshFor+askAgain || c.asking != nil && !c.asking.over(now) {
		defer c.mu.Unlock()
		return s, c.asking
	}
	a := c.newAnnouncement(c.Own)
	c.asking = a
	c.mu.Unlock()
	a.send()
	return s, a
}

// Announce sends a generation to every master.
func (c *Currency) Announce(generation uint64) *Announcement {
	a := c.newAnnouncement(generation)
	a.send()
	return a
}

// learn records the answers of masters that were asked at start. wins reports that a quorum answered.
func (c *Currency) learn(start time.Duration, wins bool, greatest Newer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.newer != nil:
	case greatest.Generation > c.Own+1:
		c.newer = &greatest
	case wins:
		c.fresh = max(c.fresh, start+freshFor)
	}
}

// Announcement sends a generation to every master, and receives the greatest generation that each master knows.
type Announcement struct {
	Start   time.Duration // the clock before the first byte was sent
	Sent    time.Time
	Decided chan struct{} // closed once a quorum of every set has answered, or none can any more

	currency *Currency
	request  single.Request

	mu      sync.Mutex
	calls   []lane.Call
	answers Answers
}

// Answers are what masters have answered so far.
type Answers struct {
	Answered, Failed uint64  // a bit for each master
	Errs             []error // of those that failed; the others' may not be read
	Won              bool    // a quorum of every set has answered
	Settled          bool    // or none can any more
	Greatest         Newer   // the greatest generation that a master knows
}

// newAnnouncement prepares an announcement, and makes Close wait for it.
func (c *Currency) newAnnouncement(generation uint64) *Announcement {
	c.Asks()
	a := &Announcement{
		Start:    c.Now(),
		Sent:     time.Now(),
		Decided:  make(chan struct{}),
		currency: c,
		request:  single.Request{Op: single.Announce, Keys: []string{single.GenerationKey}, Token: generation},
		calls:    make([]lane.Call, len(c.Lanes)),
		answers:  Answers{Errs: make([]error, len(c.Lanes))},
	}
	c.Prepare(&a.request)
	deadline := a.Sent.Add(c.Timeout)
	for i := range a.calls {
		call := &a.calls[i]
		call.Request, call.Index, call.To, call.Deadline = &a.request, i, a, deadline
	}
	return a
}

func (a *Announcement) send() {
	for i := range a.calls {
		a.currency.Lanes[i].Send(&a.calls[i])
	}
}

// Answers returns what masters have answered so far.
func (a *Announcement) Answers() Answers {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers
}

// over reports that the announcement is decided, or will not be in time: masters that have not answered are not waited
// for.
func (a *Announcement) over(now time.Duration) bool {
	return a.Answers().Settled || now-a.Start >= a.currency.Timeout
}

// Ended implements [lane.Receiver].
func (a *Announcement) Ended(call *lane.Call) {
	c := a.currency
	c.Ended(call) // before it counts: whoever is told of the decision looks
	a.mu.Lock()
	now := &a.answers
	if bit := uint64(1) << call.Index; call.Err != nil {
		now.Failed |= bit
		now.Errs[call.Index] = call.Err
	} else if now.Answered |= bit; call.Reply.Token > now.Greatest.Generation {
		now.Greatest = Newer{call.Reply.Token, call.Index}
	}
	now.Won = c.Majority(now.Answered)
	decides := !now.Settled && c.Decides(now.Answered, now.Failed)
	now.Settled = now.Settled || decides
	wins, greatest, last := now.Won, now.Greatest, bits.OnesCount64(now.Answered|now.Failed) == len(a.calls)
	a.mu.Unlock()
	if call.Err == nil && a.request.Token == c.Own {
		c.learn(a.Start, wins, greatest)
	}
	if decides {
		close(a.Decided)
	}
	if last {
		c.Done()
	}
}
