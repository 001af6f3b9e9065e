package redlock

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// maxRivals bounds the keys remembered as contended; above it, those that are over are swept out.
const maxRivals = 1024

// lines are the queues of one Locker's waiters, one a key: first come, first served. Who waits for several keys stands
// in the line of the first, and hears of the others.
type lines struct {
	quorum int

	mu     sync.Mutex
	keys   map[string][]*ticket
	also   map[string][]*ticket // by the other keys that they wait for
	rivals map[string]rival
}

// rival is a waiter of another Locker that a release of ours has called.
type rival struct {
	ahead time.Duration // until then it is left alone with the masters
	until time.Duration // until then we leave it what it has been called for
}

// ticket is a place in a line. The line's mutex guards it.
type ticket struct {
	keys  []string   // the first is the line's
	line  [1]*ticket // room for a line of this one alone
	clock Clock
	since time.Duration
	tried time.Duration // when its latest attempt began; only its own goroutine asks
	turn  chan struct{} // closed when the ticket becomes the first in line; nil if it was from the beginning
	poke  chan struct{} // of capacity 1, made when first needed: the key may be free
	early bool          // poked before poke was made
	calls uint64        // a bit for each master that has called since the last attempt
	named bool          // a quorum had called before the attempt that is under way; only its own goroutine asks
	place bool          // our name may stand in the keys' queues: another ticket left it there, or an attempt of this one
	fresh bool          // it did not when the attempt began that is under way; only its own goroutine asks
	heir  bool          // whoever left it there did so after t had come
	hears bool          // its Locker listens for it; only its own goroutine asks
}

func newLines(masters int) *lines {
	return &lines{
		quorum: quorumOf(masters),
		keys:   make(map[string][]*ticket),
		also:   make(map[string][]*ticket),
		rivals: make(map[string]rival),
	}
}

// enter joins the line for the first key of s at its end; one that enters a lock again joins none.
func (q *lines) enter(s *spec, clock Clock, since time.Duration) *ticket {
	t := &ticket{keys: s.keys, clock: clock, since: since, place: s.entered || len(s.keys) > 1}
	if s.entered {
		return t
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.keys[t.keys[0]]
	if line == nil {
		line = t.line[:0]
	} else {
		t.turn, t.place = make(chan struct{}), true
	}
	q.keys[t.keys[0]] = append(line, t)
	for _, key := range t.keys[1:] {
		q.also[key] = append(q.also[key], t)
	}
	return t
}

// leave gives up a place in line, and with the first place the turn. It reports whether somebody left t our place in the
// masters' queues and, of a ticket that gives up, the keys in whose queues our name may stand and for which nobody else of
// this Locker waits. Where somebody does, the place is theirs.
func (q *lines) leave(t *ticket, won bool) (heir bool, vacant []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range t.keys[1:] {
		remove(q.also, key, t)
	}
	if line := remove(q.keys, t.keys[0], t); len(line) > 0 && line[0].turn != nil {
		select {
		case <-line[0].turn: // it has been first for long
		default:
			close(line[0].turn)
		}
	}
	if !won && t.place {
		vacant = q.passOn(t.keys)
	}
	return t.heir, vacant
}

// remove takes t out of what m has for key, and returns what is left.
func remove(m map[string][]*ticket, key string, t *ticket) []*ticket {
	left := m[key]
	if at := slices.Index(left, t); at >= 0 {
		left = slices.Delete(left, at, at+1)
	}
	if len(left) == 0 {
		delete(m, key)
		return nil
	}
	m[key] = left
	return left
}

// bequeath leaves our place in the masters' queues to those who wait for keys here, and returns the keys for which nobody
// does.
func (q *lines) bequeath(keys []string) (vacant []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.passOn(keys)
}

// passOn is bequeath by a caller who holds the mutex.
func (q *lines) passOn(keys []string) (vacant []string) {
	vacant = keys // as is, where nobody waits for any
	for i, key := range keys {
		taken := false
		q.each(key, func(t *ticket) { t.place, t.heir, taken = true, true, true })
		switch {
		case taken && len(vacant) == len(keys):
			vacant = slices.Clone(keys[:i])
		case !taken && len(vacant) < len(keys):
			vacant = append(vacant, key)
		}
	}
	return vacant
}

// each calls f for those who are to hear of key: the first in its line, and who waits for it beside other keys. The
// caller holds the mutex.
func (q *lines) each(key string, f func(*ticket)) {
	if line := q.keys[key]; len(line) > 0 {
		f(line[0])
	}
	for _, t := range q.also[key] {
		f(t)
	}
}

// poked returns the channel on which t hears of local releases, also of one since it entered the line.
func (q *lines) poked(t *ticket) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.poke == nil {
		t.poke = make(chan struct{}, 1)
		if t.early {
			t.poke <- struct{}{}
		}
	}
	return t.poke
}

// wake has a waiter try again. The caller holds the mutex.
func (t *ticket) wake() {
	if t.poke == nil {
		t.early = true
		return
	}
	select {
	case t.poke <- struct{}{}:
	default: // it has been told
	}
}

// wake has those who wait for the keys try again.
func (q *lines) wake(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		q.each(key, (*ticket).wake)
	}
}

// wakeAll has the first of every line try again.
func (q *lines) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.keys {
		q.keys[key][0].wake()
	}
}

// called notes that a release on master i named this Locker as the next to have key. When a quorum has, its waiter
// tries: the key is free on all of these. Arrival queues may differ, so that masters call different waiters; then those
// called by some try after patience.
func (q *lines) called(key string, i int, patience time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.each(key, func(t *ticket) {
		t.calls |= 1 << i
		switch calls := bits.OnesCount64(t.calls); {
		case calls >= q.quorum:
			t.wake()
		case calls == 1:
			t.clock.AfterFunc(patience, func() { q.calledBySome(t) })
		}
	})
}

// calledBySome has t try if it has been called by too few masters, and has not tried since.
func (q *lines) calledBySome(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.calls != 0 && bits.OnesCount64(t.calls) < q.quorum {
		t.wake()
	}
}

// forgetCalls begins a new count before an attempt, and notes whether a quorum has called for this one, and whether it is
// the first to put our name into the queues.
func (q *lines) forgetCalls(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.fresh, t.place = !t.place, true
	t.named = bits.OnesCount64(t.calls) >= q.quorum
	t.calls = 0
}

// contended reports that t should let a waiter of another Locker go first, if one has been called. It has not where t
// itself was called.
func (q *lines) contended(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.rivals[t.keys[0]]
	return ok && !t.named && t.clock.Now() < r.until
}

// way is for how long t gives way to a rival that a release has just called: whatever it asked the masters meanwhile
// would be refused, and only slow that one down.
func (q *lines) way(t *ticket) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.rivals[t.keys[0]]
	if !ok || t.calls != 0 {
		return 0
	}
	return r.ahead - t.clock.Now()
}

// released hears of every release that was decided. The release of a failed attempt frees nothing that anyone waits
// for. Of a lock that was held, the next in line is told, unless the masters have called somebody, who may be in
// another process: then this Locker is polite for a while, and its own waiters are called like everybody's.
func (q *lines) released(r *round) {
	k := r.lock
	k.mu.Lock()
	held, called := k.until > 0, 0
	for i := range r.ballots {
		if b := &r.ballots[i]; b.ended && b.Reply.Called {
			called++
		}
	}
	k.mu.Unlock()
	if !held {
		return
	}
	if called == 0 {
		q.wake(r.request.Keys)
		return
	}
	now, ahead := k.locker.clock.Now(), k.locker.giveWay()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range r.request.Keys {
		if len(q.rivals) >= maxRivals {
			maps.DeleteFunc(q.rivals, func(_ string, r rival) bool { return r.until <= now })
		}
		q.rivals[key] = rival{ahead: now + ahead, until: now + lingering}
	}
}
