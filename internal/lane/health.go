package lane

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// downAfter is how many batches in a row must fail before a master counts as down.
	downAfter = 3
	// probePause is the least time between two probes of a master that is down.
	probePause = 20 * time.Millisecond
	// A silence counts against a master if it is at least silenceFloor and at least twice the master's distance. The
	// first batch also waits for silenceFloor.
	silenceFloor = 100 * time.Millisecond
	// meetTime is for how long silence proves nothing about a master that has never answered: package single lets a
	// connection take that long to be made.
	meetTime = time.Second
	// mostPatience bounds a batch's patience, unless the master is known to be further away.
	mostPatience = 200 * time.Millisecond
)

// health decides by evidence whether a master is down. Several connections in a row broke or were refused, or several
// batches in a row met silence that the distance does not explain. "In a row" means that each began after the
// previous one had ended: one event that hits all batches in flight counts once. A failure does not count if the
// master has answered since it began, nor does silence while the first connection may still be made.
type health struct {
	failures int
	down     bool
	heard    time.Time // when it last answered; before the first answer, when the first batch left
	since    time.Time // a failure that began before this proves nothing new
	next     time.Time // while the master is down, nothing leaves before this
	refusal  error     // the error for callers while the master is down
}

func (h *health) answered(now time.Time) {
	h.failures, h.down, h.refusal, h.heard = 0, false, nil, now
	h.since = now
}

// meets reports that the master has never answered, and that a connection to it may still be made.
func (h *health) meets(l *Lane, now time.Time) bool {
	return l.RTT() == 0 && h.failures == 0 && (h.heard.IsZero() || now.Sub(h.heard) < meetTime)
}

// unproven notes a silence that proves nothing.
func (h *health) unproven(began, now time.Time) {
	h.next = now.Add(probePause)
	if h.heard.IsZero() {
		h.heard = began
	}
}

// failed notes that a batch met a broken connection, or a long silence.
func (h *health) failed(why error, began, now time.Time) {
	h.unproven(began, now)
	if began.Before(h.since) {
		return
	}
	h.since = now
	h.failures++
	if h.down = h.failures >= downAfter; h.down {
		h.refusal = &downError{last: why, sent: began, failures: h.failures, silence: now.Sub(h.heard)}
	}
}

// downError is single.ErrDown with the evidence: what happened, and for how long nothing was heard.
type downError struct {
	last     error // the last batch's error
	sent     time.Time
	failures int
	silence  time.Duration
}

func (e *downError) Error() string {
	return fmt.Sprintf("%v; nothing was heard from it for %v, and %d requests in a row failed; the last one met: %v",
		single.ErrDown, e.silence.Round(time.Millisecond), e.failures, e.last)
}

func (e *downError) Unwrap() []error { return []error{single.ErrDown, e.last} }

// Outdated reports that err refused a call to a master that counts as down, and repeats the failure of a call that
// was sent before t. So it says nothing about the master since then.
func Outdated(err error, t time.Time) bool {
	down, ok := errors.AsType[*downError](err)
	return ok && down.sent.Before(t)
}

// learn notes how the master did with a batch that it had until deadline: whether it answers at all, and how far away
// it is.
func (l *Lane) learn(batch []*Call, began, ended, deadline time.Time) {
	answered := false
	var why error // the last error
	for _, c := range batch {
		answered = answered || c.Answered()
		why = c.Err
	}
	took, silent := ended.Sub(began), !answered && !ended.Before(deadline)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took.Store(int64(took))
	l.sending.Store(0)
	if l.out > 1 {
		l.sending.Store(ended.UnixNano()) // of the other batches in flight it is only known that they left earlier
	}
	switch {
	case answered:
		l.health.answered(ended)
	case silent && (took < max(2*l.RTT(), silenceFloor) || l.health.meets(l, ended)):
		l.health.unproven(began, ended)
	default:
		l.health.failed(why, began, ended)
	}
	l.down.Store(l.health.down)
	waits := l.Patience()
	switch {
	case answered:
		l.measureLocked(took, len(batch))
		waits = max(2*took, 2*batchWindow)
	case silent:
		waits *= 2
	}
	l.waits.Store(int64(min(waits, max(mostPatience, 2*l.RTT()))))
}

// measureLocked notes how long an answered batch of n calls took. The least of recent round trips is the distance;
// any excess is queueing, which more batches in flight would only increase. The least is forgotten slowly, so that a
// master that moved away is noticed. Only small batches change it, because a large batch takes long by its size.
func (l *Lane) measureLocked(took time.Duration, n int) {
	rtt := l.RTT()
	if took = max(took, 1); rtt == 0 || took < rtt {
		rtt = took
	} else if n <= smallBatch {
		rtt += (took - rtt) / 64
	}
	l.rtt.Store(int64(rtt))
	l.limit = min(max(1, int(rtt/batchWindow)), maxInFlight)
}
