// Package janitor repeats releases that masters have not confirmed, because they timed out, were cut off or had
// stopped. The key of such a release may still be set, or be set later, on the master. Until its ttl ends, it has no
// holder and blocks everyone.
//
// A confirmed release is settled, with one exception: a request that sets the key has ended without an answer. That
// request may still be in the socket of a stopped master, which may first read the release from another connection.
// So the janitor asks this master again, one interval after its first answer. Until then the release is pending,
// however long the master is gone, because the ttl begins only when the request is read.
//
// A master that is down gets one request an interval, for each pending release in turn, because one release may be
// answered although another is not. After the first answer the master gets the others. Other masters get each release
// an interval after it was last sent, or a little earlier, together with others.
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
	// Interval is the pause before a master that has not confirmed a release is asked again. So after its return, a
	// key can remain on it for that long.
	Interval = 200 * time.Millisecond
	// early is how much earlier a release may be sent, to be sent with others. It bounds the sweeps of an interval.
	early = Interval / 8
	// MaxPending bounds the pending releases of one master. Further ones lapse by their ttl.
	MaxPending = 8192
)

// Kind says what happened to a release.
type Kind uint8

// The kinds.
const (
	Adopted Kind = iota // it will be repeated
	Dropped             // too many are pending: it lapses by its ttl
	Settled             // its master has confirmed it
	Lapsed              // its key's ttl is over
)

// Config is the environment of a Janitor.
type Config struct {
	// Masters is the number of masters.
	Masters int
	// Now reads the clock. After calls a function after some time.
	Now   func() time.Duration
	After func(time.Duration, func()) schedule.Timer
	// Send sends a call to the master with its Index. Down reports whether a master counts as down.
	Send func(*lane.Call)
	Down func(master int) bool
	// Timeout returns how long a request for a lock with this ttl may take.
	Timeout func(ttl time.Duration) time.Duration
	// Lapsed returns when a key that was set at now or earlier, with this ttl, has certainly expired.
	Lapsed func(now, ttl time.Duration) time.Duration
	// Observe receives what happened to a release; the Janitor's mutex is held. May be nil.
	Observe func(kind Kind, master int, r *single.Request)
	// Left receives a call that was answered, and has taken its waiter out of a master's queues. May be nil.
	Left func(*lane.Call)
	// Waiter is the name of this Locker in the masters' queues. Unclaimed returns the keys for which no caller of it
	// waits any more. If Unclaimed is nil, that is all keys.
	Waiter    string
	Unclaimed func(keys []string) []string
}

// Janitor keeps the pending releases of one set of masters. It is safe for concurrent use. Users may call it while
// they hold their own mutexes. Make it with [New].
type Janitor struct {
	Config

	mu       sync.Mutex
	pending  [][]*pending // by master, oldest first
	count    int
	silent   []silence       // by master
	next     []time.Duration // by master, when it may be asked again if it is down
	timer    schedule.Timer
	armed    bool
	draining bool
	closed   bool
	idle     chan struct{} // closed when draining and nothing is pending
	runs     sync.WaitGroup
}

// pending is one release that one master has not confirmed. The Janitor's mutex guards it. While asking is true, the
// lane owns the call.
type pending struct {
	lane.Call
	janitor *Janitor
	need    int           // confirmations still to come
	lapses  time.Duration // when the key has certainly expired on the master
	keeps   time.Duration // for a release that keeps its key: until when
	kept    string        // the owner of a kept key that must be removed, because that time is over; see shorten
	landing bool          // an acquisition may land after the first question, and enter a queue again
	unread  bool          // a request that sets the key may be unread, so its ttl may not have begun
	due     time.Duration // when to ask next
	asking  bool
}

// New makes a Janitor without pending releases.
func New(c Config) *Janitor {
	return &Janitor{
		Config: c, pending: make([][]*pending, c.Masters), silent: make([]silence, c.Masters),
		next: make([]time.Duration, c.Masters), idle: make(chan struct{}),
	}
}

// Adopt takes over the release c of one master, which has ended. Either it was not answered, or (unsure) the master
// may set the key later. If the key is set now, its ttl ends at lapses. A release that keeps the key
// ([single.Request].Keep) keeps it until keeps. A [single.Leave] is adopted, too. It is repeated until the master
// answers, or until somebody here waits for the keys again; its entry has expired at lapses.
func (j *Janitor) Adopt(c *lane.Call, unsure bool, lapses, keeps time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.adoptLocked(c, unsure, lapses, keeps)
}

func (j *Janitor) adoptLocked(c *lane.Call, unsure bool, lapses, keeps time.Duration) {
	if j.closed {
		return
	}
	p := &pending{janitor: j, need: 1, landing: unsure, lapses: lapses, keeps: keeps, due: j.Now() + Interval}
	p.Call = lane.Call{Call: single.Call{Request: c.Request}, Index: c.Index, To: p}
	if unsure && c.Err != nil {
		p.need, p.unread = 2, true
	}
	switch n := len(j.pending[c.Index]); {
	case !p.leaves() && n < MaxPending, p.leaves() && n < MaxPending/2 && !j.repeatsLocked(p):
	default:
		j.observe(Dropped, p)
		return
	}
	j.pending[c.Index] = append(j.pending[c.Index], p)
	j.count++
	j.observe(Adopted, p)
	j.armLocked(Interval)
}

// Pending returns how many releases have not been confirmed.
func (j *Janitor) Pending() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.count
	for i := range j.pending {
		n -= j.leavesLocked(i)
	}
	return n
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

// sweep sends the releases that are due.
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

// begin returns the releases that a sweep sends; ok is false after Close.
func (j *Janitor) begin() (due []*pending, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, false
	}
	j.runs.Add(1)
	j.armed = false
	now := j.Now()
	wait := Interval
	for i := range j.pending {
		j.dropLapsedLocked(i, now)
		due = j.pickLocked(due, i, now)
		wait = min(wait, j.waitLocked(i, now))
	}
	if j.count > 0 {
		j.armLocked(wait)
	}
	return due, true
}

// waitLocked returns the time until the next release is due that master i may be sent.
func (j *Janitor) waitLocked(i int, now time.Duration) time.Duration {
	wait := Interval
	for _, p := range j.pending[i] {
		if !p.asking {
			wait = min(wait, p.due-now)
		}
	}
	if j.Down(i) {
		return max(wait, j.next[i]-now)
	}
	return wait
}

// dropLapsedLocked forgets releases with keys that have expired on master i.
func (j *Janitor) dropLapsedLocked(i int, now time.Duration) {
	before := len(j.pending[i])
	j.pending[i] = slices.DeleteFunc(j.pending[i], func(p *pending) bool {
		lapsed := !p.asking && (now >= p.lapses && (!p.unread || j.draining) || p.leaves() && j.uselessLocked(p))
		if lapsed {
			j.observe(Lapsed, p)
		}
		return lapsed
	})
	j.settledLocked(before - len(j.pending[i]))
}

// pickLocked adds the releases to send to master i now: all that are due or, if the master is down, the one that has
// waited longest.
func (j *Janitor) pickLocked(due []*pending, i int, now time.Duration) []*pending {
	down := j.Down(i)
	if down && now+early < j.next[i] {
		return due
	}
	first := len(due)
	for _, p := range j.pending[i] {
		if !p.asking && now+early >= p.due {
			due = append(due, p)
		}
	}
	if len(due) > first && down {
		due[first] = slices.MinFunc(due[first:], func(a, b *pending) int { return cmp.Compare(a.due, b.due) })
		due = due[:first+1]
	}
	for _, p := range due[first:] {
		p.asking, p.due, j.next[i] = true, now+Interval, now+Interval
		p.shorten(now)
		j.leaveTooLocked(p)
		p.Deadline = time.Now().Add(j.Timeout(p.Request.TTL))
	}
	return due
}

// shorten adapts a release that keeps its key. The key must not be kept longer than the first request would have kept
// it. If that time is over, the key is removed. First the hold's own key is removed, then a key that an earlier
// request, read late, has kept.
func (p *pending) shorten(now time.Duration) {
	r := p.Request
	if r.Keep == 0 {
		return
	}
	again := p.plain()
	if left := p.keeps - now; left >= time.Millisecond {
		again.Keep, again.KeepAs = left, r.KeepAs
	} else {
		p.kept = r.KeepAs
	}
	p.Request = &again
}

// Ended implements [lane.Receiver]. c has been sent again, and has ended.
func (p *pending) Ended(c *lane.Call) {
	j := p.janitor
	if c.Err == nil && c.Request.Waiter != "" && j.Left != nil {
		j.Left(c)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p.asking = false
	j.hearLocked(p)
	if c.Err != nil {
		return
	}
	now := j.Now()
	p.due = now + Interval
	if p.unread { // the unread request is read about now; its key lives for at most one ttl from now
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

// observe reports what happened to p.
func (j *Janitor) observe(kind Kind, p *pending) {
	if j.Observe != nil && !p.leaves() {
		j.Observe(kind, p.Index, p.Request)
	}
}

// hurryLocked sweeps at once if the master, which has just answered, has more releases due.
func (j *Janitor) hurryLocked(i int, now time.Duration) {
	waits := slices.ContainsFunc(j.pending[i], func(p *pending) bool { return !p.asking && now >= p.due })
	if waits && !j.closed && j.timer != nil {
		j.armed = true
		j.timer.Reset(0)
	}
}

// settledLocked subtracts n from the count of pending releases.
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

// Drain waits until every release is confirmed or has lapsed, or ctx is done, and returns how many are left. It waits
// for no leave of a master that does not answer.
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

// Close stops the Janitor and waits for a running sweep. Pending releases lapse by their ttl.
func (j *Janitor) Close() {
	j.mu.Lock()
	j.closed = true
	if j.timer != nil {
		j.timer.Stop()
	}
	j.mu.Unlock()
	j.runs.Wait()
}
