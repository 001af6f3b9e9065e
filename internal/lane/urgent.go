package lane

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/schedule"
)

// This file lets operations of holds overtake others. A lane has few batches in flight. A lost packet keeps one of them in
// flight until TCP sends the packet again, or until the latest deadline in the batch.
//
// So an operation of a hold leaves as an extra, beyond the limit and on another connection, under two conditions. Half of its
// time is over, and the latest batch is overdue: it has been in flight for longer than the lane's patience. Extras do not flood a
// slow master. Patience grows with the time of its answers, and there are at most maxExtras at a time.

// maxExtras bounds the batches beyond the limit. With maxInFlight it is as many as a master has connections by default.
const maxExtras = 2

// leastAlarm is the least time until an alarm rings.
const leastAlarm = time.Millisecond

// alarm has the queue looked at though no batch has come back. The lane's mutex guards it.
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

// setAlarmLocked has the queue looked at by a time.
func (l *Lane) setAlarmLocked(at, now time.Time) {
	a := &l.alarm
	if !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	in := max(at.Sub(now), leastAlarm)
	if a.timer == nil {
		a.timer = a.after(in, l.ring)
	} else {
		a.timer.Reset(in)
	}
}

// ring sets a worker to work if something may leave now.
func (l *Lane) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarm.at = time.Time{}
	if l.closed || len(l.queue) == 0 {
		return
	}
	now := time.Now()
	if at, any := l.turnLocked(l.fullLocked()); any && !at.After(now) {
		l.setToWorkLocked()
		return
	}
	l.wakeInTimeLocked(now)
}

// fullLocked reports that another batch would be an extra.
func (l *Lane) fullLocked() bool { return l.busy-l.extras >= l.limitLocked() }

// callLocked sets a worker to work for c, which has come into the queue: now, or in time.
func (l *Lane) callLocked(c *Call) {
	switch {
	case l.health.down && l.out == 0:
		l.setAlarmLocked(l.health.next, time.Now())
	case !l.health.down && !l.fullLocked():
		l.setToWorkLocked()
	case c.Timeout > 0 && !c.follows():
		l.setAlarmLocked(l.extraAtLocked(c), time.Now())
	}
}

// wakeInTimeLocked sets the alarm for what stays in the queue.
func (l *Lane) wakeInTimeLocked(now time.Time) {
	full := l.fullLocked()
	if !full && (!l.health.down || l.out > 0) {
		return // whatever may leave has been taken, and the rest follows what is in flight
	}
	if at, any := l.turnLocked(full); any {
		l.setAlarmLocked(at, now)
	}
}

// turnLocked is when something in the queue may leave, within the limit or as an extra, if anything may.
func (l *Lane) turnLocked(extra bool) (at time.Time, any bool) {
	switch {
	case !extra && l.health.down:
		return l.health.next, true
	case !extra:
		return time.Time{}, true
	case l.extras >= maxExtras:
		return time.Time{}, false
	}
	var first *Call
	for _, c := range l.queue {
		if c.Timeout > 0 && !c.follows() && (first == nil || c.urgent().Before(first.urgent())) {
			first = c
		}
	}
	if first == nil {
		return time.Time{}, false
	}
	return l.extraAtLocked(first), true
}

// extraAtLocked is when c, an operation of a hold, may leave as an extra.
func (l *Lane) extraAtLocked(c *Call) time.Time {
	at := c.urgent()
	if overdue := l.departed.Add(l.Patience()); overdue.After(at) {
		at = overdue
	}
	if l.health.down && l.health.next.After(at) {
		at = l.health.next
	}
	return at
}

// urgent is when half of c's time is over.
func (c *Call) urgent() time.Time { return c.Deadline.Add(-c.Timeout / 2) }
