package lane

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file decides what enters the queue of a lane and what leaves it, in which order.

// refuseLocked says why a call can't be queued now. One that follows another is queued in any case: if it ended before that
// one, its receiver would take for undone what is still going to be done.
func (l *Lane) refuseLocked(c *Call) error {
	switch {
	case l.closed:
		return single.ErrClosed
	case c.follows():
		return nil
	case c.Timeout > 0 && len(l.queue) < 2*maxQueue: // nothing but operations of holds fills the second half
		return nil
	case len(l.queue) >= maxQueue:
		return single.ErrFull
	case l.health.down && (l.out > 0 || len(l.queue) > 0 || time.Now().Before(l.health.next)):
		return l.health.refusal
	default:
		return nil
	}
}

// sweepLocked removes calls from a long queue whose deadline has passed: the master hangs, and its client does not keep
// deadlines, or nobody would still be waiting here. It looks once in sweepEvery calls.
func (l *Lane) sweepLocked() []*Call {
	if len(l.queue) < maxBatch || len(l.queue)%sweepEvery != 0 {
		return nil
	}
	now, n := time.Now(), 0
	for n < len(l.queue) && !l.queue[n].Deadline.After(now) && !l.queue[n].follows() {
		n++
	}
	if n == 0 {
		return nil
	}
	late := slices.Clone(l.queue[:n])
	l.queue = slices.Delete(l.queue, 0, n)
	l.queued.Store(int64(len(l.queue)))
	return late
}

// fillLocked takes the calls of a batch from the queue, in their order. If they are more than it has room for, operations of
// holds go first, unless they went before others in the last batch. An extra carries nothing else.
func (l *Lane) fillLocked(t *trip) {
	var s span
	if t.extra || len(l.queue) > maxBatch && !l.passed {
		l.cutLocked(t, &s, true)
	}
	if !t.extra {
		l.cutLocked(t, &s, false)
	}
}

// cutLocked moves calls from the queue to the end of a batch, in their order; with holds, operations of holds alone. One that follows a
// call in flight stays, and so does what others want with the same keys later: a release that waits for its acquire must not be
// overtaken by the next acquire of its key, which it would be in the way of. The same owner's calls are not held up, because the one
// that is waited for may have come into the queue last; it goes first, and the rest can follow. Nor is one overtaken that does not
// go with the others; the first of these comes to the front, so the next batch begins with it.
func (l *Lane) cutLocked(t *trip, s *span, holds bool) {
	kept, passed := l.queue[:0], -1
	t.more = false
	for i, c := range l.queue {
		if len(t.calls) == maxBatch {
			kept, t.more = append(kept, l.queue[i:]...), true
			break
		}
		if c.follows() || len(l.held) > 0 && c.Timeout == 0 && l.heldUpLocked(c.Request) {
			l.holdLocked(c)
			kept = append(kept, c)
			continue
		}
		if holds && c.Timeout == 0 {
			kept, t.more = append(kept, c), true
			continue
		}
		if !s.admit(c) {
			l.holdLocked(c)
			kept, t.more = append(kept, c), true
			if passed < 0 {
				passed = len(kept) - 1
			}
			continue
		}
		c.canceled = c.Undoes && c.After != nil && c.After.Err == nil && !c.After.Sent
		c.Unqueued = c.Unqueued && (c.After == nil || c.After.Err == nil && c.After.Reply.Outcome == single.Granted)
		c.After = nil // no longer needed; do not keep it alive
		t.calls = append(t.calls, c)
	}
	if l.passed = passed >= 0; l.passed {
		first := kept[passed]
		copy(kept[1:], kept[:passed])
		kept[0] = first
	}
	clear(l.held)
	clear(l.queue[len(kept):])
	l.queue = kept
	l.queued.Store(int64(len(kept)))
}

// span is what the calls of one batch allow it: when the latest of them may end, and when an operation of a hold has to.
type span struct{ latest, limit time.Time }

// admit reports that c may go with the others, and counts it. Otherwise a lost packet would keep an operation of a hold in
// flight, where it can't be tried again, for as long as others may take.
func (s *span) admit(c *Call) bool {
	n := *s
	if c.Deadline.After(n.latest) {
		n.latest = c.Deadline
	}
	if end := c.Deadline.Add(2 * c.Timeout); c.Timeout > 0 && (n.limit.IsZero() || end.Before(n.limit)) {
		n.limit = end
	}
	if !n.limit.IsZero() && n.latest.After(n.limit) {
		return false
	}
	*s = n
	return true
}

// holdLocked has the keys of c, which stays in the queue, wait for it. Calls of the owner whose call it follows are not held up:
// a [single.Leave] has no owner of its own.
func (l *Lane) holdLocked(c *Call) {
	owner := c.Request.Owner
	if c.follows() {
		owner = c.After.Request.Owner
	}
	for _, key := range c.Request.Keys {
		if _, held := l.held[key]; !held {
			l.held[key] = owner
		}
	}
}

// heldUpLocked reports that another owner's call for one of the keys stays in the queue.
func (l *Lane) heldUpLocked(r *single.Request) bool {
	return slices.ContainsFunc(r.Keys, func(key string) bool {
		owner, held := l.held[key]
		return held && owner != r.Owner
	})
}
