// Package lane is the queue in front of one master that turns many callers into few batches, and keeps the order of what one
// hold asks of it. What a request is, and how a master performs it, is package single's.
package lane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/schedule"
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
)

// Lane is the queue in front of one master. Requests that arrive while others are in flight leave together as one
// batch, so many callers share a connection instead of fighting for it.
//
// A master counts as down when several connections in a row have broken, or several batches in a row met silence for longer
// than its distance explains. From then on one acquisition at a time is let through as a probe, and all others end at once
// with [single.ErrDown]. Operations of holds still leave, together and at intervals. The first answer opens the lane again.
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
	waits   atomic.Int64 // the least time that the next batch has, in nanoseconds; learn alone changes it
	sending atomic.Int64 // since when a batch has been in flight, in Unix nanoseconds; 0: none is

	mu       sync.Mutex
	queue    []*Call
	held     map[string]string // the owners of keys whose calls stay in the queue; of use during cutLocked
	passed   bool              // the last batch left something behind that did not go with the others
	busy     int               // workers that are sending, or on their way to look at the queue
	idle     int               // workers that wait on wake and have not been woken
	limit    int               // how many may be busy, but for extras: the batches in flight
	out      int               // batches in flight
	extras   int               // of these, beyond the limit
	departed time.Time         // when the latest of them left
	closed   bool
	health   health
	alarm    alarm
}

// New puts a lane in front of master. start must run its argument in a goroutine of its own, as
// [golang.org/x/sync/errgroup.Group.Go] does; the lane starts a few of them, when they are first needed. after calls a function
// once a time has passed, as [time.AfterFunc] does.
func New(master Master, start func(func() error), after func(time.Duration, func()) schedule.Timer) *Lane {
	l := &Lane{master: master, start: start, limit: 1, wake: make(chan struct{}, maxInFlight+maxExtras), held: make(map[string]string)}
	l.paced, _ = master.(Paced)
	l.alarm.after = after
	l.waits.Store(int64(silenceFloor))
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
	l.callLocked(c)
	l.mu.Unlock()
	if len(late) > 0 {
		endAll(late, single.ErrLate)
		l.nudge()
	}
}

// growLocked sets one more worker to work if there may be one. The mutex is held so that nothing is started once Close has
// returned.
func (l *Lane) growLocked() {
	if !l.fullLocked() {
		l.setToWorkLocked()
	}
}

func (l *Lane) setToWorkLocked() {
	l.busy++
	if l.idle > 0 {
		l.idle--
		l.wake <- struct{}{}
		return
	}
	l.start(l.work)
}

// limitLocked is how many batches may be in flight, but for extras.
func (l *Lane) limitLocked() int {
	if l.health.down {
		return 1
	}
	return l.limit
}

// Down reports that the master counts as down.
func (l *Lane) Down() bool {
	return l.down.Load()
}

// RTT returns the master's distance: the least recent time that a request took to come back. Zero before the first.
func (l *Lane) RTT() time.Duration { return time.Duration(l.rtt.Load()) }

// Patience is for how long a batch waits for its answer at least, whatever its calls' deadlines: twice what the last answer took, and
// after silence twice the last patience. A shorter silence says nothing of the master. A caller whose deadline is over does
// not wait that long; the answer still tells the lane, and the connection lives on.
func (l *Lane) Patience() time.Duration { return time.Duration(l.waits.Load()) }

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
	l.alarm.stop()
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

// nudge has a worker look at the queue again: what follows a call that ended without one may leave now.
func (l *Lane) nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.queue) > 0 {
		l.growLocked()
	}
}
