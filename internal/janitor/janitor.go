// Package janitor asks masters again that have not confirmed a release: they timed out, were cut off or had stopped. A key
// that one of them still has, or is yet to set, belongs to nobody and would keep everybody out until its ttl is over.
//
// A release that is confirmed is settled, except where something that sets the key had ended without an answer. Such a
// request may still sit in the socket of a master that was stopped, next to the release that it is about to read from
// another connection first. So that master is asked once more, one interval after it first answered; until then the release
// is pending, however long the master is gone, since the ttl only begins when the request is read.
//
// A master that is down gets one request an interval, for each pending release in turn: another one may be answered though
// this one is not. With the first answer it gets the rest.
package janitor

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// Interval is how often a master that has not confirmed a release is asked again, so it is also how long a key can be
	// left on it after it has come back.
	Interval = 200 * time.Millisecond
	// MaxPending bounds what is remembered of one master. What comes on top lapses by its ttl.
	MaxPending = 8192
)

// Kind says what became of a release.
type Kind uint8

// The kinds.
const (
	Adopted Kind = iota // it is going to be asked for again
	Dropped             // too many are pending: it lapses by its ttl
	Settled             // its master has confirmed it
	Lapsed              // its key's ttl is over
)

// Config is what a Janitor works with.
type Config struct {
	// Masters is how many there are.
	Masters int
	// Now reads the clock, and After calls a function once a time has passed.
	Now   func() time.Duration
	After func(time.Duration, func()) schedule.Timer
	// Send sends a call to the master of its Index, and Down reports that a master counts as down.
	Send func(*lane.Call)
	Down func(master int) bool
	// Timeout is how long a request for a lock with this ttl may take.
	Timeout func(ttl time.Duration) time.Duration
	// Lapsed is when a key is sure to be gone that was set by now, with this ttl.
	Lapsed func(now, ttl time.Duration) time.Duration
	// Observe is told what became of a release, with the Janitor's mutex held. May be nil.
	Observe func(kind Kind, master int, r *single.Request)
	// Left is told of a call that has been answered, and has taken its waiter out of the queues of a master. May be nil.
	Left func(*lane.Call)
}

// Janitor is the pending releases of one set of masters. It is safe for concurrent use; its mutex may be taken under those of
// its users. Make it with [New].
type Janitor struct {
	Config

	mu       sync.Mutex
	pending  [][]*pending // by master, oldest first
	count    int
	timer    schedule.Timer
	armed    bool
	draining bool
	closed   bool
	idle     chan struct{} // closed when draining and nothing is pending
	runs     sync.WaitGroup
}

// pending is one release that one master has not confirmed. The Janitor's mutex guards it, except that while it is being
// asked for, the call is its lane's.
type pending struct {
	lane.Call
	janitor *Janitor
	need    int           // confirmations still to come
	lapses  time.Duration // when the master has expired the key by itself
	keeps   time.Duration // until when one that keeps its key is to keep it
	kept    string        // whom else's key is to be removed, because that time is over; see shorten
	unread  bool          // something that sets the key may still be unread, so its ttl has not begun
	due     time.Duration // when to ask next
	asking  bool
}

// New makes a Janitor without pending releases.
func New(c Config) *Janitor {
	return &Janitor{Config: c, pending: make([][]*pending, c.Masters), idle: make(chan struct{})}
}

// Adopt takes over the release c of one master, which has ended: unanswered, or answered by a master that may yet set the
// key, which unsure says. The key's ttl is over at lapses if it is there now. One that keeps the key ([single.Request].Keep) is to keep
// it until keeps.
func (j *Janitor) Adopt(c *lane.Call, unsure bool, lapses, keeps time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	p := &pending{janitor: j, need: 1, lapses: lapses, keeps: keeps, due: j.Now() + Interval}
	p.Call = lane.Call{Call: single.Call{Request: c.Request}, Index: c.Index, To: p}
	if unsure && c.Err != nil {
		p.need, p.unread = 2, true
	}
	if len(j.pending[c.Index]) >= MaxPending {
		j.observe(Dropped, p)
		return
	}
	j.pending[c.Index] = append(j.pending[c.Index], p)
	j.count++
	j.observe(Adopted, p)
	j.armLocked(Interval)
}

// Pending is how many releases have not been confirmed.
func (j *Janitor) Pending() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}

// armLocked sets the timer unless it is set.
func (j *Janitor) armLocked(d time.Duration) {
	if j.armed || j.closed {
		return
	}
	j.armed = true
	if j.timer == nil {
		j.timer = j.After(d, j.sweep)
		return
	}
	j.timer.Reset(d)
}

// sweep asks the masters for what is due.
func (j *Janitor) sweep() {
	due, ok := j.begin()
	if !ok {
		return
	}
	defer j.runs.Done()
	for _, p := range due {
		j.Send(&p.Call)
	}
}

// begin picks what a sweep sends. After Close there is none.
func (j *Janitor) begin() (due []*pending, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, false
	}
	j.runs.Add(1)
	j.armed = false
	now := j.Now()
	for i := range j.pending {
		j.dropLapsedLocked(i, now)
		due = j.pickLocked(due, i, now)
	}
	if j.count > 0 {
		j.armLocked(Interval)
	}
	return due, true
}

// dropLapsedLocked forgets what master i has expired by itself.
func (j *Janitor) dropLapsedLocked(i int, now time.Duration) {
	before := len(j.pending[i])
	j.pending[i] = slices.DeleteFunc(j.pending[i], func(p *pending) bool {
		lapsed := !p.asking && now >= p.lapses && (!p.unread || j.draining)
		if lapsed {
			j.observe(Lapsed, p)
		}
		return lapsed
	})
	j.settledLocked(before - len(j.pending[i]))
}

// pickLocked adds what master i is to be asked now: all that is due or, if it is down, the one that has waited for longest.
func (j *Janitor) pickLocked(due []*pending, i int, now time.Duration) []*pending {
	first := len(due)
	for _, p := range j.pending[i] {
		if !p.asking && now >= p.due {
			due = append(due, p)
		}
	}
	if len(due) > first && j.Down(i) {
		due[first] = slices.MinFunc(due[first:], func(a, b *pending) int { return cmp.Compare(a.due, b.due) })
		due = due[:first+1]
	}
	for _, p := range due[first:] {
		p.asking, p.due = true, now+Interval
		p.shorten(now)
		p.Deadline = time.Now().Add(j.Timeout(p.Request.TTL))
	}
	return due
}

// shorten has a release that keeps its key for a while keep it no longer than it would have, or remove it if that time is over: what is still
// the hold's, and then what an earlier request has kept that was read late.
func (p *pending) shorten(now time.Duration) {
	r := p.Request
	if r.Keep == 0 {
		return
	}
	again := single.Request{Op: r.Op, Kind: r.Kind, Keys: r.Keys, Owner: r.Owner, TTL: r.TTL, Waiter: r.Waiter}
	if left := p.keeps - now; left >= time.Millisecond {
		again.Keep, again.KeepAs = left, r.KeepAs
	} else {
		p.kept = r.KeepAs
	}
	p.Request = &again
}

// Ended implements [lane.Receiver]: a master was asked again.
func (p *pending) Ended(c *lane.Call) {
	j := p.janitor
	if c.Err == nil && c.Request.Waiter != "" && j.Left != nil {
		j.Left(c)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p.asking = false
	if c.Err != nil {
		return
	}
	now := j.Now()
	p.due = now + Interval
	if p.unread { // what was unread is read about now, and lives for a ttl from here at the most
		p.unread = false
		p.lapses = max(p.lapses, j.Lapsed(now, p.Request.TTL))
	}
	if p.need--; p.need == 0 && p.kept != "" {
		again := *p.Request
		again.Owner, p.kept, p.need, p.due = p.kept, "", 1, now
		p.Request = &again
	}
	if p.need == 0 {
		all := j.pending[c.Index]
		if at := slices.Index(all, p); at >= 0 {
			j.pending[c.Index] = slices.Delete(all, at, at+1)
			j.settledLocked(1)
			j.observe(Settled, p)
		}
	}
	j.hurryLocked(c.Index, now)
}

// observe tells what became of p.
func (j *Janitor) observe(kind Kind, p *pending) {
	if j.Observe != nil {
		j.Observe(kind, p.Index, p.Request)
	}
}

// hurryLocked sweeps at once if the master, which has just answered, can be asked for more.
func (j *Janitor) hurryLocked(i int, now time.Duration) {
	waits := slices.ContainsFunc(j.pending[i], func(p *pending) bool { return !p.asking && now >= p.due })
	if waits && !j.closed && j.timer != nil {
		j.armed = true
		j.timer.Reset(0)
	}
}

// settledLocked counts down what is pending.
func (j *Janitor) settledLocked(n int) {
	j.count -= n
	if j.draining && j.count == 0 {
		select {
		case <-j.idle:
		default:
			close(j.idle)
		}
	}
}

// Drain waits until every release is confirmed or has lapsed, or ctx is done, and returns how many are left.
func (j *Janitor) Drain(ctx context.Context) int {
	j.beginDrain()
	select {
	case <-j.idle:
	case <-ctx.Done():
	}
	return j.Pending()
}

func (j *Janitor) beginDrain() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.draining = true
	j.settledLocked(0)
}

// Close stops the Janitor and waits for a sweep that is under way. What is pending lapses by its ttl.
func (j *Janitor) Close() {
	j.mu.Lock()
	j.closed = true
	if j.timer != nil {
		j.timer.Stop()
	}
	j.mu.Unlock()
	j.runs.Wait()
}
