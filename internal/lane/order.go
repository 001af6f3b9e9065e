package lane

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file decides which calls enter and leave the queue of a lane, and their order.

// refuseLocked returns why a call cannot be queued now; nil if it can. A call that follows another is always queued.
// If it ended before the other call, its receiver would believe that the other call's work is undone, although it may
// still be done.
func (l *Lane) refuseLocked(c *Call) error {
	switch {
	case l.closed:
		return single.ErrClosed
	case c.follows():
		return nil
	case c.Timeout > 0 && len(l.queue) < 2*maxQueue: // only operations of holds fill the second half
		return nil
	case len(l.queue) >= maxQueue:
		return single.ErrFull
	case l.health.down && (l.out > 0 || len(l.queue) > 0 || time.Now().Before(l.health.next)):
		return l.health.refusal
	default:
		return nil
	}
}

// sweepLocked removes late calls from a long queue: the master hangs, and its client ignores deadlines, or these
// calls would have ended. It looks once in sweepEvery calls.
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

// fillLocked moves the calls of a batch out of the queue, in order. If the batch has no room for all, operations of
// holds go first, unless they went before others in the last batch. An extra carries only operations of holds.
func (l *Lane) fillLocked(t *trip) {
	var s span
	if t.extra || len(l.queue) > maxBatch && !l.passed {
		l.cutLocked(t, &s, true)
	}
	if !t.extra {
		l.cutLocked(t, &s, false)
	}
}

// cutLocked moves calls from the queue to the end of a batch, in order; with holds, only operations of holds. These
// calls stay:
//
//   - a call that follows a call in flight;
//   - later calls of other owners for the same keys. For example, a release waits for its acquire. The next acquire
//     of the key must not overtake the release, because it would be refused. Later calls of the same owner may go,
//     because the call that is followed may have entered the queue last. Then it goes first, and the others can
//     follow it;
//   - a call that cannot go with the batch, and other owners' later calls for its keys. The first such call moves to
//     the front, so the next batch begins with it.
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

// span bounds one batch by its calls: the latest deadline in it, and the time by which its operations of holds must
// end.
type span struct{ latest, limit time.Time }

// admit reports whether c may go in the same batch, and if so counts c. Otherwise a lost packet would keep an
// operation of a hold in flight, unable to be tried again, for as long as the other calls may take.
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

// holdLocked makes other owners' calls for the keys of c wait, because c stays in the queue. It lets calls of the
// owner pass that c follows: a [single.Leave] has no owner itself.
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

// heldUpLocked reports whether another owner's call for one of the keys stays in the queue.
func (l *Lane) heldUpLocked(r *single.Request) bool {
	return slices.ContainsFunc(r.Keys, func(key string) bool {
		owner, held := l.held[key]
		return held && owner != r.Owner
	})
}
