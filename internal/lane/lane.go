// Package lane is the queue in front of one master that turns many callers into few batches, and keeps the order of what one
// hold asks of it. What a request is, and how a master performs it, is package single's.
package lane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// maxBatch bounds one pipeline, so that no reply waits for more than this many others.
	maxBatch = 256
	// maxQueue bounds what waits in front of a master that has stopped answering. At 256 a batch it is more than any
	// master answers within a request timeout.
	maxQueue = 16384
	// sweepEvery says at which lengths a long queue is searched for calls that are late. It divides maxQueue, so that a
	// full queue is.
	sweepEvery = 64
	// maxInFlight bounds the batches on the way to one master at the same time.
	maxInFlight = 16
	// batchWindow is the round-trip time up to which one batch in flight is best: the requests that gather meanwhile
	// travel together and save more than they wait. A longer round trip earns one batch more per window.
	batchWindow = time.Millisecond
	// smallBatch is the size up to which a batch's time is mostly distance.
	smallBatch = 4
	// downAfter is how many batches in a row must go unanswered before a master counts as down.
	downAfter = 3
	// probePause is the least time between two probes of a master that is down.
	probePause = 20 * time.Millisecond
)

// Lane is the queue in front of one master. Requests that arrive while others are in flight leave together as one
// batch, so many callers share a connection instead of fighting for it.
//
// A master that leaves several batches in a row unanswered counts as down: from then on one call at a time is let
// through as a probe and all others end at once with [single.ErrDown], so a dead master costs its callers nothing. The first
// answer opens the lane again.
//
// A Lane is safe for concurrent use. Its goroutines are started by the function given to [New], and have all
// returned when Close has, except where the master itself does not return.
type Lane struct {
	master Master
	paced  Paced // nil: batches leave as soon as a worker is free
	start  func(func() error)
	wake   chan struct{}

	// What Backlog and RTT read without the mutex.
	queued  atomic.Int64 // length of the queue
	took    atomic.Int64 // how long a batch took last, in nanoseconds
	down    atomic.Bool  // the master counts as down
	rtt     atomic.Int64 // how far away the master is, in nanoseconds; learn alone changes it
	sending atomic.Int64 // since when a batch has been in flight, in Unix nanoseconds; 0: none is

	mu     sync.Mutex
	queue  []*Call
	held   map[string]string // the owners of keys whose calls stay in the queue; of use during cutLocked
	busy   int               // workers that are sending, or on their way to look at the queue
	idle   int               // workers that wait on wake and have not been woken
	limit  int               // how many may be busy: the batches in flight
	closed bool
	health health
}

// New puts a lane in front of master. start must run its argument in a goroutine of its own, as
// [golang.org/x/sync/errgroup.Group.Go] does; the lane starts a few of them, when they are first needed.
func New(master Master, start func(func() error)) *Lane {
	l := &Lane{master: master, start: start, limit: 1, wake: make(chan struct{}, maxInFlight), held: make(map[string]string)}
	l.paced, _ = master.(Paced)
	return l
}

// Send queues c and returns at once; c.To is told when it has ended. A call that can't be sent ends before Send
// returns, so callers must not hold a lock that Ended takes.
func (l *Lane) Send(c *Call) {
	l.mu.Lock()
	late := l.sweepLocked()
	if err := l.refuseLocked(c); err != nil {
		l.mu.Unlock()
		endAll(late, single.ErrLate)
		c.end(err)
		l.nudge()
		return
	}
	l.queue = append(l.queue, c)
	l.queued.Store(int64(len(l.queue)))
	l.growLocked()
	l.mu.Unlock()
	if len(late) > 0 {
		endAll(late, single.ErrLate)
		l.nudge()
	}
}

// growLocked sets one more worker to work if there may be one. The mutex is held so that nothing is started once Close has
// returned.
func (l *Lane) growLocked() {
	switch {
	case l.busy >= l.limit:
	case l.idle > 0:
		l.busy++
		l.idle--
		l.wake <- struct{}{}
	default:
		l.busy++
		l.start(l.work)
	}
}

// Down reports that the master counts as down.
func (l *Lane) Down() bool {
	return l.down.Load()
}

// RTT returns the master's distance: the least recent time that a request took to come back. Zero before the first.
func (l *Lane) RTT() time.Duration { return time.Duration(l.rtt.Load()) }

// Queued reports that calls wait to be sent, so that one sent now would travel with others.
func (l *Lane) Queued() bool { return l.queued.Load() > 0 }

// Backlog estimates for how long a call sent now would wait before it leaves, and rather too long than too short. Batches
// count as if each waited for the one before, though several may be in flight, and calls that follow one in flight count
// too. A master that is slow can't be told soon enough from one that is far away: counting either less let a slow one be
// flooded before its answers, which are late by then, could tell.
func (l *Lane) Backlog(now time.Time) time.Duration {
	queued := l.queued.Load()
	if queued == 0 || l.paced != nil { // what a paced master has not called for yet is no backlog
		return 0
	}
	wait := time.Duration(l.took.Load()) * time.Duration(queued/maxBatch+1)
	if since := l.sending.Load(); since != 0 {
		wait = max(wait, time.Duration(now.UnixNano()-since)) // the master may have stopped meanwhile
	}
	return wait
}

// Close ends the lane: what is queued ends with [single.ErrClosed], what is in flight ends as it would have. It does not
// wait; the group that runs the lane's goroutines does.
func (l *Lane) Close() {
	l.mu.Lock()
	l.closed = true
	dropped := l.queue
	l.queue = nil
	l.queued.Store(0)
	for ; l.idle > 0; l.idle-- {
		l.busy++
		l.wake <- struct{}{}
	}
	l.mu.Unlock()
	endAll(dropped, single.ErrClosed)
}

// work sends batches until the lane is closed. It always returns nil: what goes wrong with a master is a vote, not a
// failure of the fan-out.
func (l *Lane) work() error {
	batch, bare := make([]*Call, 0, smallBatch), make([]*single.Call, 0, smallBatch)
	for {
		if batch = l.take(batch[:0]); len(batch) == 0 {
			return nil
		}
		if cap(bare) < len(batch) {
			bare = make([]*single.Call, 0, cap(batch))
		}
		l.run(batch, bare)
		clear(batch) // the calls are their rounds' from now on
		clear(bare[:len(batch)])
	}
}

// take waits for calls and removes up to maxBatch of them from the queue; none when the lane is closed.
func (l *Lane) take(batch []*Call) []*Call {
	gathered := l.paced == nil
	for {
		var then step
		switch batch, then = l.look(batch, gathered); then {
		case leave:
			return batch
		case gather:
			l.paced.Gather()
			gathered = true
		case sleep:
			<-l.wake
			gathered = l.paced == nil
		}
	}
}

// step is what a worker does when it has looked at the queue.
type step uint8

const (
	leave  step = iota // with the calls that it has found; without any when the lane is closed
	gather             // look again when everything has been sent that a paced master waits for
	sleep              // until there is something to look for
)

// look removes calls from the queue if they may be sent now. A busy worker always looks at the queue before it stops being
// busy, unless another busy one will, so no call is forgotten.
func (l *Lane) look(batch []*Call, gathered bool) ([]*Call, step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.busy--
		return nil, leave
	}
	if len(l.queue) > 0 && l.busy <= l.limit {
		if !gathered {
			return batch, gather
		}
		if batch = l.cutLocked(batch, maxBatch); len(batch) > 0 {
			if len(batch) == maxBatch && len(l.queue) > 0 {
				l.growLocked()
			}
			return batch, leave
		}
		// Everything waits for a call in flight; the worker that has it will look again.
	}
	l.busy--
	l.idle++
	return batch, sleep
}

// run performs one batch, in bare as the master gets it, and tells every call's receiver. Calls whose deadline has passed
// are not sent.
func (l *Lane) run(batch []*Call, bare []*single.Call) {
	began := time.Now()
	live := batch[:0]
	var latest *Call
	for _, c := range batch {
		if c.canceled {
			l.drop(c, nil)
			continue
		}
		if !c.Deadline.After(began) {
			l.drop(c, single.ErrLate)
			continue
		}
		if latest == nil || c.Deadline.After(latest.Deadline) {
			latest = c
		}
		live, bare = append(live, c), append(bare, &c.Call)
	}
	if len(live) == 0 {
		return
	}
	l.sending.Store(began.UnixNano())
	l.master.Do(deadlineContext{latest}, bare)
	l.learn(live, began, time.Now())
	for i, c := range live {
		if i > 0 && l.paced != nil {
			l.paced.Pace()
		}
		c.To.Ended(c)
		c.over.Store(true) // only now: what comes after it must not end before its receiver has heard of this one
	}
}

// drop ends a call that waited for too long, or for nothing. If it was the probe, the next call is. A pause lets calls be too
// late in many lanes at once: a simulation has each end at its own moment, or it would be open which of them decides a round.
func (l *Lane) drop(c *Call, err error) {
	if l.paced != nil {
		l.paced.Pace()
	}
	l.mu.Lock()
	l.health.probing = false
	l.mu.Unlock()
	c.end(err)
}

// learn takes note of how the master did: whether it answers at all, and how far away it is.
func (l *Lane) learn(batch []*Call, began, ended time.Time) {
	answered := false
	var why error // of the last that was not
	for _, c := range batch {
		answered = answered || c.Answered()
		why = c.Err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took.Store(int64(ended.Sub(began)))
	l.sending.Store(0)
	if l.busy > 1 {
		l.sending.Store(ended.UnixNano()) // of the others in flight it is only known that they left before
	}
	l.health.learn(answered, why, began, ended)
	l.down.Store(l.health.down)
	if !answered {
		return
	}
	// The least of recent round trips is the distance; what is above it is queueing, which more batches in flight
	// would only make worse. It is forgotten slowly, by small batches only (a large one takes long by its size), so
	// that a master that moved away is noticed.
	rtt := l.RTT()
	if took := ended.Sub(began); rtt == 0 || took < rtt {
		rtt = took
	} else if len(batch) <= smallBatch {
		rtt += (took - rtt) / 64
	}
	l.rtt.Store(int64(rtt))
	l.limit = min(max(1, int(rtt/batchWindow)), maxInFlight)
}

// nudge has a worker look at the queue again: what follows a call that ended without one may leave now.
func (l *Lane) nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.queue) > 0 {
		l.growLocked()
	}
}
