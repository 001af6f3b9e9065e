package contend

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// Contest collects the owners that refusals name during a try. The zero value belongs to a wait and collects nothing.
type Contest struct {
	mu    sync.Mutex
	round int               // 0: no try
	began time.Duration     // when the latest round began
	hold  *hold.Hold        // of the latest round
	own   []string          // owners of earlier rounds
	named map[string]uint64 // the masters that named each owner in the latest round
	since map[int]naming    // the owner that each master named last, and since when

	counter atomic.Uint64 // the greatest fencing counter that refused one that publishes
}

// naming is an owner that a master has named since the round that began at this time.
type naming struct {
	owner string
	began time.Duration
}

// Begin notes that the n-th round is about to begin.
func (c *Contest) Begin(n int, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != nil {
		c.own = append(c.own, c.hold.Owner())
	}
	c.round, c.began, c.hold = n, now, nil
	clear(c.named)
}

// Enter notes that h is the hold of the round.
func (c *Contest) Enter(h *hold.Hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round > 0 {
		c.hold = h
	}
}

// readers is a name for all readers of a key together. Each master names one reader; together the readers keep a
// writer out.
const readers = "\x00readers"

// Note enters the owner that a refusal of h names, also if the refusal is late. Owners of earlier rounds of this try do
// not count, and neither do fencing counters.
func (c *Contest) Note(h *hold.Hold, call *lane.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := call.Reply.Holder
	if c.hold != h || c.hold == nil || slices.Contains(c.own, name) || byCounter(call) {
		return
	}
	if call.Request.Kind == single.Exclusive && call.Reply.Token > 0 {
		name = readers
	}
	if c.named == nil {
		c.named, c.since = make(map[string]uint64), make(map[int]naming)
	}
	c.named[name] |= 1 << call.Index
	if c.since[call.Index].owner != name {
		c.since[call.Index] = naming{name, c.began}
	}
}

// Held reports that one owner has the lock. A quorum named it in the latest round: each of these masters granted the
// key to that owner, so the owner won. Of two sets a quorum of one is enough if it has named the owner for long. Then a
// Locker over that set alone has the lock, because a contender has another owner in each round. The owner of a
// reentrant contender stays the same. So two of these contenders can each have a quorum of another set, round after
// round, and must not both give up. To readers a writer gives way sooner. took is the time of the latest round.
func (c *Contest) Held(env *hold.Env, took time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, masters := range c.named {
		if env.Majority(masters) {
			return true
		}
		long := outlasts * max(FirstPause, took)
		if name == readers {
			long = anEarlierRound
		}
		unique := name == readers || owner.Made(name) // and not of a Reentrant contender
		if unique && env.AnyMajority(c.lastingLocked(name, long)) {
			return true
		}
	}
	return false
}

const (
	// outlasts is for how many rounds' time masters must have named an owner that is no contender. A contender's key
	// stays until its round has ended and its release has arrived, and the next round of this try may come before.
	outlasts = 3
	// anEarlierRound is the time from any round to a later one, at least.
	anEarlierRound = 1
)

// lastingLocked returns the masters that named this owner in the latest round, and have done so for long.
func (c *Contest) lastingLocked(name string, long time.Duration) (masters uint64) {
	for i, since := range c.since {
		if since.owner == name && c.began-since.began >= long {
			masters |= c.named[name] & (1 << i)
		}
	}
	return masters
}

// InTheWay reports that the key is held, once a try has ended: a quorum named one owner. In the only round of a try a
// quorum of one set is enough, since that is more often a holder than a contender. Otherwise owners count that a master
// named before the last round, too, since contenders change from round to round. If outvoted says that the
// masters of these owners leave no quorum, the key is held: waiting helps, and trying again does not.
func (c *Contest) InTheWay(env *hold.Env, outvoted func(masters uint64) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lasting uint64
	for name, masters := range c.named {
		if env.Majority(masters) || c.round == 1 && env.AnyMajority(masters) {
			return true
		}
		lasting |= c.lastingLocked(name, anEarlierRound)
	}
	return lasting != 0 && outvoted(lasting)
}

// Patience returns how long a round of h waits for late masters after a quorum has answered without a decision. A
// stopped master would otherwise hold up the next round until the timeout. slowest is the distance of the slowest
// master. The result for a wait is 0: no limit.
func (c *Contest) Patience(h *hold.Hold, took, slowest time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != h || c.hold == nil {
		return 0
	}
	return max(FirstPause, 2*took, 2*slowest) << min(c.round-1, 5)
}

// NoteCounter records the counter that refused a lock which publishes its token. The next proposal is then above that
// counter, however far it is.
func (c *Contest) NoteCounter(call *lane.Call) {
	if call.Err != nil || call.Reply.Outcome != single.Refused || !byCounter(call) {
		return
	}
	for {
		last := c.counter.Load()
		if call.Reply.Token <= last || c.counter.CompareAndSwap(last, call.Reply.Token) {
			return
		}
	}
}

// Counter returns the greatest counter that was recorded.
func (c *Contest) Counter() uint64 { return c.counter.Load() }

// byCounter reports that the fencing counter refused c, and not an owner. c publishes its token.
func byCounter(c *lane.Call) bool { return c.Request.Exact && c.Reply.Holder == "" && c.Reply.TTL == 0 }

// Answered notes how one of so many masters has answered a hold of the acquisition.
func (a *Acquisition) Answered(masters int, h *hold.Hold, call *lane.Call, refused bool) {
	a.contest.NoteCounter(call)
	if call.Request.Op != single.Release { // which may have been canceled
		a.complaints.note(masters, call, a.Timeout)
	}
	if refused && call.Request.Op == single.Acquire {
		a.contest.Note(h, call)
	}
}

// Patience returns for how long an attempt that has taken so long waits for late masters; 0: no limit. slowest is the
// distance of the slowest master.
func (a *Acquisition) Patience(h *hold.Hold, took, slowest time.Duration) time.Duration {
	return a.contest.Patience(h, took, slowest)
}
