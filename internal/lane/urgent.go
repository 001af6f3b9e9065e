package lane

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/schedule"
)

// This file lets operations of holds overtake others. A lane has few batches in flight. A lost packet keeps one batch
// in flight until TCP sends the packet again, or until the latest deadline in the batch.
//
// So an operation of a hold leaves as an extra, beyond the limit and on another connection, under two conditions.
// Half of its time is over, and the latest batch is overdue: it has been in flight for longer than the lane's
// patience. Extras do not flood a slow master. Patience grows with the time of its answers, and there are at most
// maxExtras at a time.

// maxExtras bounds the batches beyond the limit. With maxInFlight it is as many as a master has connections by
// default.
const maxExtras = 2

// leastAlarm is the shortest time for which the alarm is set.
const leastAlarm = time.Millisecond

// alarm makes a worker look at the queue even if no batch has come back. The lane's mutex guards it.
type alarm struct {
	after func(time.Duration, func()) schedule.Timer
	timer schedule.Timer
	at    time.Time // zero: it is not set
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// setAlarmLocked sets the alarm to fire at the given time or earlier.
func (l *Lane) setAlarmLocked(at time.Time) {
	a := &l.alarm
	if !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	in := max(time.Until(at), leastAlarm)
	if a.timer == nil {
		a.timer = a.after(in, l.ring)
	} else {
		a.timer.Reset(in)
	}
}

// ring sets a worker to work if a call may leave now. A worker that is on its way looks at the queue anyway.
func (l *Lane) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarm.at = time.Time{}
	if l.closed || len(l.queue) == 0 || l.busy > l.out {
		return
	}
	if at, some := l.turnLocked(l.fullLocked()); some && !at.After(time.Now()) {
		l.setToWorkLocked()
		return
	}
	l.wakeInTimeLocked()
}

// fullLocked reports that another batch would be an extra.
func (l *Lane) fullLocked() bool { return l.busy-l.extras >= l.limitLocked() }

// callLocked sets a worker to work for the new call c: now, or in time.
func (l *Lane) callLocked(c *Call) {
	full := l.fullLocked()
	switch {
	case !full && !l.health.down:
		l.setToWorkLocked()
	case c.follows():
	default:
		if at, may := l.turnOfLocked(c, full); may {
			l.setAlarmLocked(at)
		}
	}
}

// wakeInTimeLocked sets the alarm for the calls that stay in the queue.
func (l *Lane) wakeInTimeLocked() {
	full := l.fullLocked()
	if !full && !l.health.down {
		return // all calls that may leave have been taken, and the others follow calls in flight
	}
	if at, some := l.turnLocked(full); some {
		l.setAlarmLocked(at)
	}
}

// turnLocked returns when the first call in the queue may leave, within the limit or as an extra, if any may.
func (l *Lane) turnLocked(extra bool) (first time.Time, some bool) {
	if !extra && !l.health.down {
		return time.Time{}, true
	}
	for _, c := range l.queue {
		if c.follows() {
			continue
		}
		if at, may := l.turnOfLocked(c, extra); may && (!some || at.Before(first)) {
			first, some = at, true
		}
	}
	return first, some
}

// turnOfLocked returns when c may leave, if it may.
func (l *Lane) turnOfLocked(c *Call, extra bool) (at time.Time, may bool) {
	switch {
	case !extra:
		return l.health.next, true // it is down
	case c.Timeout == 0:
		return time.Time{}, false
	}
	at = c.Deadline.Add(-c.Timeout / 2)
	if overdue := l.departed.Add(l.Patience()); overdue.After(at) {
		at = overdue
	}
	if l.health.down && l.health.next.After(at) {
		at = l.health.next
	}
	return at, l.extras < maxExtras
}
