package lane

import (
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file has the workers of a lane. Each worker takes a batch from the queue, has the master perform it, and ends
// its calls.

// work sends batches until the lane is closed. It always returns nil: a failing master is a vote, not a failure of
// the fan-out.
func (l *Lane) work() error {
	t := trip{calls: make([]*Call, 0, smallBatch), bare: make([]*single.Call, 0, smallBatch)}
	for {
		if l.take(&t); len(t.calls) == 0 {
			return nil
		}
		if cap(t.bare) < len(t.calls) {
			t.bare = make([]*single.Call, 0, cap(t.calls))
		}
		l.run(&t)
		clear(t.calls) // from now on the calls belong to their rounds
		clear(t.bare[:len(t.calls)])
	}
}

// trip is a batch on its way to the master and back. Its worker uses it again.
type trip struct {
	calls []*Call
	bare  []*single.Call // the same, as the master gets them
	began time.Time
	prior time.Time // when the previous batch left
	out   bool      // it has left the queue and has not returned
	extra bool      // beyond the limit
	more  bool      // it left calls behind that may leave, too
}

// take waits for calls and moves up to maxBatch of the queue's calls into t; none if the lane is closed.
func (l *Lane) take(t *trip) {
	t.calls = t.calls[:0]
	gathered := l.paced == nil
	for {
		switch l.look(t, gathered) {
		case leave:
			return
		case gather:
			l.paced.Gather()
			gathered = true
		case sleep:
			<-l.wake
			gathered = l.paced == nil
		}
	}
}

// step is the next action of a worker that has looked at the queue.
type step uint8

const (
	leave  step = iota // with the calls that it has found; the lane is closed if it has none
	gather             // look again when all calls are sent that a paced master waits for
	sleep              // until there are calls
)

// look removes calls from the queue if they may be sent now. A busy worker always looks at the queue before it stops
// being busy, unless another busy one will, so no call is forgotten.
func (l *Lane) look(t *trip, gathered bool) step {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backLocked(t)
	if l.closed {
		l.busy--
		return leave
	}
	if len(l.queue) > 0 {
		now := time.Now()
		t.extra = l.busy-l.extras > l.limitLocked()
		if at, some := l.turnLocked(t.extra); some && !at.After(now) {
			if !gathered {
				return gather
			}
			if l.fillLocked(t); len(t.calls) > 0 {
				l.departLocked(t, now)
				return leave
			}
			// All calls wait for a call in flight; the worker that carries it will look again.
		}
	}
	l.busy--
	l.idle++
	if len(l.queue) > 0 {
		l.wakeInTimeLocked()
	}
	return sleep
}

// backLocked notes that t is no longer in flight.
func (l *Lane) backLocked(t *trip) {
	if t.out {
		l.out--
	}
	if t.out && t.extra {
		l.extras--
		if l.departed.Equal(t.began) {
			l.departed = t.prior // the batch that was overdue may still be stuck
		}
	}
	t.out = false
}

// departLocked notes that t leaves. If calls stay behind that do not fit or do not go with t, another worker may take
// them.
func (l *Lane) departLocked(t *trip, now time.Time) {
	t.out, t.began, t.prior, l.departed = true, now, l.departed, now
	l.out++
	if t.extra {
		l.extras++
	}
	if t.more {
		l.growLocked()
	}
	if len(l.queue) > 0 && l.alarm.at.IsZero() { // an alarm that is set fires in time for the whole queue
		l.wakeInTimeLocked()
	}
}

// run performs one batch and informs every call's receiver. Calls past their deadline are not sent.
func (l *Lane) run(t *trip) {
	live, bare := t.calls[:0], t.bare[:0]
	var latest *Call
	for _, c := range t.calls {
		if c.canceled {
			l.drop(c, nil)
			continue
		}
		if !c.Deadline.After(t.began) {
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
	until := &latest.Deadline
	if patience := l.Patience(); latest.Deadline.Sub(t.began) < patience {
		until = new(t.began.Add(patience))
	}
	l.sending.Store(t.began.UnixNano())
	l.master.Do(deadlineContext{until}, bare)
	l.learn(live, t.began, time.Now(), *until)
	for i, c := range live {
		if i > 0 && l.paced != nil {
			l.paced.Pace()
		}
		c.To.Ended(c)
		c.over.Store(true) // only now: the next call must not end before its receiver has learnt of this one
	}
}

// drop ends a call that was not sent: it is too late, or not needed. After a pause, calls may be too late in many
// lanes at once. A simulation ends each at its own moment, so that their order, which decides a round, is fixed.
func (l *Lane) drop(c *Call, err error) {
	if l.paced != nil {
		l.paced.Pace()
	}
	if err != nil && c.Timeout > 0 && l.Down() {
		err = l.refusal()
	}
	c.end(err)
}

// refusal returns the evidence that the master is down, or [single.ErrLate] if it is not down.
func (l *Lane) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.down {
		return l.health.refusal
	}
	return single.ErrLate
}
