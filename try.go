package redlock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// A try takes the lock now or says why not. A round is split if the masters granted the key to several callers and no
// caller has a quorum. A split round is no refusal: the lock is free. So a try repeats the round after a random pause.
// It ends with the lock, with a holder that a quorum names, or with the request timeout.
//
// A new Locker has no connections yet. To make one may take longer than a request. So a try also repeats a round that
// had no quorum because of this.

// maxProposals bounds the rounds without a pause between them that a counter ahead of the published token may cost.
const maxProposals = 3

// once makes a single attempt, and says how many rounds it took.
func (l *Locker) once(ctx context.Context, s *spec) (k *Lock, rounds int, err error) {
	k, f := l.try(ctx, s, func() (*Lock, *failure) {
		rounds++
		return l.attempt(ctx, s, nil)
	})
	return k, rounds, f.error()
}

// try calls round until a round is won or another owner has the lock. Each round is a separate acquisition: validity
// counts from the start of the last round, and a master releases a lost round before it sees the next one. Rounds begin
// within the request timeout. Then a vote that is still split becomes [ErrContended].
func (l *Locker) try(ctx context.Context, s *spec, round func() (*Lock, *failure)) (*Lock, *failure) {
	end := l.clock.Now() + s.Timeout
	for n := 1; ; n++ {
		began, counter, strange := l.clock.Now(), s.counted.Load(), unmet(l.env.Lanes, l.sets)
		s.contest.begin(n)
		k, f := round()
		now := l.clock.Now()
		took := now - began
		if strange != 0 && took > s.Timeout/2 { // most of it was for connections
			took, end = contend.FirstPause, now+s.Timeout
		}
		if strange != 0 && ctx.Err() == nil && f.is(failUnreached) && f.q.late() && hasMet(l.env.Lanes, l.sets, strange) {
			pause := max(contend.FirstPause, 2*l.slowest()) // until this round's keys are released
			if l.sleep(ctx, l.closing, nil, pause) != nil {
				return k, f
			}
			continue
		}
		if !f.is(failHeld) || s.contest.held(l.sets) {
			return k, f
		}
		if s.counted.Load() != counter && n < maxProposals {
			continue // the masters' counters were in its way, and are known now
		}
		left := end - now
		if left <= max(contend.FirstPause, took) {
			f.q.Reason = s.contest.verdict(l.sets, f.q)
			return nil, f
		}
		refusal := f.refusal()
		pause := refusal.Spread(n, took, l.opts.Jitter)
		if ended := l.sleep(ctx, l.closing, nil, min(pause, left/2)); ended != nil {
			f.q.Reason = s.contest.verdict(l.sets, f.q)
			return nil, &failure{err: &waitError{key: l.shown(s.Keys[0]), ended: ended, last: f.err}, q: f.q}
		}
		if s.contest.held(l.sets) { // late votes may have completed a quorum
			return nil, f
		}
	}
}

// unmet returns the masters that have never answered, and to which a connection may still be made. It returns none if
// the others are a quorum.
func unmet(lanes []*lane.Lane, sets electorates) (masters uint64) {
	for i, l := range lanes {
		if lane.Unmet(l) {
			masters |= 1 << i
		}
	}
	if masters == 0 || sets.majority(everyMaster&^masters) {
		return 0
	}
	return masters
}

// hasMet reports that a quorum may answer the next round: of the masters that were unmet, enough have answered or may
// still do so.
func hasMet(lanes []*lane.Lane, sets electorates, unmet uint64) bool {
	hope := everyMaster &^ unmet
	for i, l := range lanes {
		if l.RTT() != 0 || lane.Unmet(l) {
			hope |= 1 << i
		}
	}
	return sets.majority(hope)
}

// late reports that masters enough for a quorum have granted or not answered. The others have answered with an error.
func (e *QuorumError) late() bool {
	late := 0
	for _, node := range e.Nodes {
		timeout, is := errors.AsType[net.Error](node.Err)
		silent := errors.Is(node.Err, errNoAnswer) || is && timeout.Timeout() || errors.Is(node.Err, single.ErrLate)
		if silent || node.Err == nil && node.Vote != Refused {
			late++
		}
	}
	return late >= e.Quorum
}

// contest collects the owners that refusals name during a try. The zero value belongs to a wait and collects nothing.
type contest struct {
	mu    sync.Mutex
	round int               // 0: no try
	lock  *Lock             // of the latest round
	own   []string          // owners of earlier rounds
	named map[string]uint64 // the masters that named each owner in the latest round
	first map[int]string    // the owner that each master named first
}

// begin notes that the n-th round is about to begin.
func (c *contest) begin(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != nil {
		c.own = append(c.own, c.lock.Owner())
	}
	c.round, c.lock = n, nil
	clear(c.named)
}

// enter notes that k is the lock of the round.
func (c *contest) enter(k *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round > 0 {
		c.lock = k
	}
}

// readers is a name for all readers of a key together. Each master names one reader; together the readers keep a
// writer out.
const readers = "\x00readers"

// note enters the owner that a refusal of k names, also if the refusal is late. Owners of earlier rounds of this try do
// not count, and neither do fencing counters.
func (c *contest) note(k *Lock, call *lane.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := call.Reply.Holder
	if c.lock != k || c.lock == nil || slices.Contains(c.own, name) || byCounter(call) {
		return
	}
	if call.Request.Kind == single.Exclusive && call.Reply.Token > 0 {
		name = readers
	}
	if c.named == nil {
		c.named, c.first = make(map[string]uint64), make(map[int]string)
	}
	c.named[name] |= 1 << call.Index
	if _, known := c.first[call.Index]; !known {
		c.first[call.Index] = name
	}
}

// held reports that one owner has the lock. A quorum named it in the latest round: each of these masters granted the
// key to that owner, so the owner won. Of two sets a quorum of one is enough if it named the owner in the first
// round, too. Then a Locker over that set alone has the lock, because a contender has another owner in each round. The
// owner of a [Reentrant] contender stays the same. So two of these contenders can each have a quorum of another set,
// round after round, and must not both give up.
func (c *contest) held(sets electorates) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, masters := range c.named {
		if sets.majority(masters) {
			return true
		}
		var lasting uint64
		for i, first := range c.first {
			if first == name {
				lasting |= masters & (1 << i)
			}
		}
		unique := name == readers || owner.Made(name) // and not of a Reentrant contender
		if c.round > 1 && unique && sets.anyMajority(lasting) {
			return true
		}
	}
	return false
}

// verdict returns the reason for a try that ended with q. The key is held if a quorum of a set named one owner.
// Otherwise owners count that a master named in the first and in the last round, since contenders change from round to
// round. If these owners and silent masters leave no quorum, the key is held: waiting helps, and trying again does not.
func (c *contest) verdict(sets electorates, q *QuorumError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, masters := range c.named {
		if sets.anyMajority(masters) {
			return ErrHeld
		}
	}
	var lasting uint64
	for i, first := range c.first {
		lasting |= c.named[first] & (1 << i)
	}
	absent := 0
	for i := range q.Nodes {
		if q.Nodes[i].Vote == Unknown {
			absent++
		}
	}
	for i := range sets {
		if n := sets[i].of(lasting); sets[i].name == q.Set && c.round > 1 && n > 0 && n+absent > sets[i].spare() {
			return ErrHeld
		}
	}
	return ErrContended
}

// patience returns how long a round of k waits for late masters after a quorum has answered without a decision. A
// stopped master would otherwise hold up the next round until the timeout. The result for a wait is 0: no limit.
func (c *contest) patience(k *Lock, took time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != k || c.lock == nil {
		return 0
	}
	return max(contend.FirstPause, 2*took, 2*k.locker.slowest()) << min(c.round-1, 5)
}

// noteCounter records the counter that refused a lock which publishes its token. The next proposal is then above that
// counter, however far it is.
func (s *spec) noteCounter(c *lane.Call) {
	if c.Err != nil || c.Reply.Outcome != single.Refused || !byCounter(c) {
		return
	}
	for {
		last := s.counted.Load()
		if c.Reply.Token <= last || s.counted.CompareAndSwap(last, c.Reply.Token) {
			return
		}
	}
}

// byCounter reports that the fencing counter refused c, and not an owner. c publishes its token.
func byCounter(c *lane.Call) bool { return c.Request.Exact && c.Reply.Holder == "" && c.Reply.TTL == 0 }
