package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// A try takes the lock now or says why not. A round may be split: masters granted it to several callers, and none of them has a
// quorum. That is no refusal, because nobody has the lock. So a try repeats a split round, after a random pause, until it has the lock,
// somebody else has it, or the request timeout is over.

// maxProposals is how many rounds that publish their token follow one another without a pause: counters of the masters may be ahead of them.
const maxProposals = 3

// once makes a single attempt, and says how many rounds it took.
func (l *Locker) once(ctx context.Context, s *spec) (k *Lock, rounds int, err error) {
	k, err = l.try(ctx, s, func() (*Lock, error) {
		rounds++
		return l.attempt(ctx, s, nil)
	})
	return k, rounds, err
}

// try calls round until it has won, or somebody else has. Each round is an acquisition of its own: its validity counts from its own
// start, and what a lost one has left is released before the next one reaches the same master. Rounds begin within the request timeout.
// A vote that is split until then is [ErrContended].
func (l *Locker) try(ctx context.Context, s *spec, round func() (*Lock, error)) (*Lock, error) {
	end := l.clock.Now() + s.timeout
	for n := 1; ; n++ {
		began, counter := l.clock.Now(), s.counted.Load()
		s.contest.begin(n)
		k, err := round()
		var q *QuorumError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &q) || s.contest.held(l.sets) {
			return k, err
		}
		if s.counted.Load() != counter && n < maxProposals {
			continue // the masters' counters were in its way, and are known now
		}
		took := l.clock.Now() - began
		left := end - l.clock.Now()
		if left <= max(firstPause, took) {
			q.Reason = s.contest.verdict(l.sets, q)
			return nil, err
		}
		if ended := l.sleep(ctx, nil, min(l.spread(q, n, took), left/2)); ended != nil {
			q.Reason = s.contest.verdict(l.sets, q)
			return nil, &waitError{key: l.shown(s.keys[0]), ended: ended, last: err}
		}
		if s.contest.held(l.sets) { // as votes tell that came meanwhile
			return nil, err
		}
	}
}

// contest is what the rounds of a try learn of the owners that are in its way. The zero value, of a wait, learns nothing.
type contest struct {
	mu    sync.Mutex
	round int               // 0: no try
	lock  *Lock             // of the latest round
	own   []string          // owners of the rounds before
	named map[string]uint64 // in the latest round: the masters that named an owner
	first map[int]string    // whom each master named first
}

// begin notes that the n-th round is about to begin.
func (c *contest) begin(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != nil {
		c.own = append(c.own, c.lock.owner)
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

// readers is the name of all who share a key: each master names one of them, and together they keep a writer out.
const readers = "\x00readers"

// note notes whom a master named that has refused k, be its vote a straggler or not. What the rounds before have left there is nobody's, and
// a counter is no owner.
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

// held reports that in the latest round a quorum has named one owner. Each of these masters has granted it the key, so it has won.
func (c *contest) held(sets electorates) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, masters := range c.named {
		if sets.majority(masters) {
			return true
		}
	}
	return false
}

// verdict is what it means that no quorum has named one owner to the end, of which q tells. An owner that a master has named from the first
// round to the last is no contender, whose rounds are short. If such owners, and masters that do not answer, leave too few for a
// quorum, the key is held until they have gone.
func (c *contest) verdict(sets electorates, q *QuorumError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// patience is for how long a round of k waits for masters that are late, where a quorum has answered and shared its votes: a master that has
// stopped would keep it from the next round until its timeout. It is 0 of a wait.
func (c *contest) patience(k *Lock, took time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != k || c.lock == nil {
		return 0
	}
	return max(firstPause, 2*took, 2*k.locker.slowest()) << min(c.round-1, 5)
}

// hurryLocked ends a round of a try that only waits for masters which are late, when its patience is over.
func (r *round) hurryLocked() {
	k := r.lock
	if r.verdict != open || r.hurried || r.votes.refused == 0 || r.request.Op != single.Acquire ||
		!k.locker.sets.majority(r.votes.granted|r.votes.refused) {
		return
	}
	r.hurried = true
	if d := k.spec.contest.patience(k, k.locker.clock.Now()-r.start); d > 0 {
		k.locker.clock.AfterFunc(d, r.expire)
	}
}
