// Package lane is the queue in front of one master. It gathers many callers' requests into few batches, and keeps the
// requests of one hold in order. Package single defines requests and performs them.
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
	// maxQueue bounds the queue in front of a master that has stopped answering. With 256 calls a batch, it is more
	// than any master answers within a request timeout.
	maxQueue = 16384
	// sweepEvery says at which lengths a long queue is searched for late calls. It divides maxQueue, so a full queue
	// is searched.
	sweepEvery = 64
	// maxInFlight bounds the batches on the way to one master at the same time.
	maxInFlight = 16
	// Up to batchWindow of round-trip time, one batch in flight is best: the requests that gather during the
	// trip travel together, and that saves more than their wait costs. Each further window of round-trip time allows
	// one more batch.
	batchWindow = time.Millisecond
	// smallBatch is the size up to which a batch's time is mostly distance to the master.
	smallBatch = 4
)

// Lane is the queue in front of one master. Requests that arrive while other requests are in flight leave together as
// one batch, so many callers share a connection.
//
// A master counts as down when several connections in a row have broken, or several batches in a row met silence for
// longer than its distance explains. From then on the lane sends one acquisition at a time as a probe. All other
// acquisitions end at once with [single.ErrDown]. Operations of holds still leave, together and at intervals. The
// first answer opens the lane again.
//
// A Lane is safe for concurrent use. The function given to [New] starts its goroutines. They have all returned when
// Close has, except while the master itself does not return.
type Lane struct {
	master Master
	paced  Paced // nil: batches leave as soon as a worker is free
	start  func(func() error)
	wake   chan struct{}

	// Backlog and RTT read these without the mutex.
	queued  atomic.Int64 // length of the queue
	took    atomic.Int64 // how long a batch took last, in nanoseconds
	down    atomic.Bool  // the master counts as down
	rtt     atomic.Int64 // distance to the master, in nanoseconds; only learn changes it
	waits   atomic.Int64 // the least time for the next batch, in nanoseconds; only learn changes it
	sending atomic.Int64 // since when a batch has been in flight, in Unix nanoseconds; 0: no batch is

	mu       sync.Mutex
	queue    []*Call
	held     map[string]string // the owners of keys with calls that stay in the queue; used during cutLocked
	passed   bool              // the last batch left calls behind that could not go with it
	busy     int               // workers that are sending, or about to look at the queue
	idle     int               // workers that wait on wake and have not been woken
	limit    int               // how many may be busy, not counting extras: the batches in flight
	out      int               // batches in flight
	extras   int               // batches in flight beyond the limit
	departed time.Time         // when the latest batch left
	closed   bool
	health   health
	alarm    alarm
}

// New puts a lane in front of master. start must run its argument in a new goroutine, as
// [golang.org/x/sync/errgroup.Group.Go] does. The lane starts a few goroutines when they are first needed. after
// calls a function after some time, as [time.AfterFunc] does.
func New(master Master, start func(func() error), after func(time.Duration, func()) schedule.Timer) *Lane {
	l := &Lane{
		master: master, start: start, limit: 1, wake: make(chan struct{}, maxInFlight+maxExtras),
		held: make(map[string]string),
	}
	l.paced, _ = master.(Paced)
	l.alarm.after = after
	l.waits.Store(int64(silenceFloor))
	return l
}

// Send queues c and returns at once. c.To learns when c has ended. A call that cannot be sent ends before Send
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

// growLocked sets one more worker to work if the limit allows it. The mutex is held, so no worker starts after Close
// has returned.
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

// limitLocked returns how many batches may be in flight, not counting extras.
func (l *Lane) limitLocked() int {
	if l.health.down {
		return 1
	}
	return l.limit
}

// Down reports whether the master counts as down.
func (l *Lane) Down() bool {
	return l.down.Load()
}

// Unmet reports that the lane's master has never answered, and that a connection to it may still be made.
func Unmet(l *Lane) bool {
	if l.RTT() != 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health.meets(l, time.Now())
}

// RTT returns the distance to the master: the shortest recent round trip. Zero before the first.
func (l *Lane) RTT() time.Duration { return time.Duration(l.rtt.Load()) }

// Patience returns how long a batch waits for its answer at least, even if the deadlines of its calls are shorter:
// twice the time of the last answer, and after silence twice the last patience. A shorter silence proves nothing
// about the master. A caller does not wait beyond its deadline. The answer still informs the lane, and the connection
// stays usable.
func (l *Lane) Patience() time.Duration { return time.Duration(l.waits.Load()) }

// Queued reports whether calls wait to be sent, so that a new one would travel with these.
func (l *Lane) Queued() bool { return l.queued.Load() > 0 }

// Backlog estimates for how long a new call would wait before it is sent; in doubt the estimate is too long. It
// counts batches as if each waited for the previous one, although several may be in flight, and it counts calls that
// follow a call in flight. For too long, a slow master looks like a distant one. With a lower estimate, callers
// flooded a slow master before its late answers could show that it was slow.
func (l *Lane) Backlog(now time.Time) time.Duration {
	queued := l.queued.Load()
	if queued == 0 {
		return 0
	}
	since := l.sending.Load()
	if since == 0 && l.paced != nil { // a paced master is about to call for these calls
		return 0
	}
	wait := time.Duration(l.took.Load()) * time.Duration(queued/maxBatch+1)
	if since != 0 {
		wait = max(wait, time.Duration(now.UnixNano()-since)) // the master may have stopped since then
	}
	return wait
}

// Close ends the lane. Queued calls end with [single.ErrClosed]; calls in flight end as usual. Close does not wait
// for the lane's goroutines; their group does.
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

// nudge makes a worker look at the queue again: calls behind a call that ended unsent may leave now.
func (l *Lane) nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.queue) > 0 {
		l.growLocked()
	}
}
