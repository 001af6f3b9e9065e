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
	case len(l.queue) >= maxQueue:
		return single.ErrFull
	default:
		return l.health.admit(time.Now)
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
	l.health.probing = false // it may be among them
	late := slices.Clone(l.queue[:n])
	l.queue = slices.Delete(l.queue, 0, n)
	l.queued.Store(int64(len(l.queue)))
	return late
}

// cutLocked moves up to n calls from the queue to the end of batch, in their order. One that follows a call in flight stays,
// and so does what others want with the same keys later: a release that waits for its acquire must not be overtaken by
// the next acquire of its key, which it would be in the way of. The same owner's calls are not held up, because the one
// that is waited for may have come into the queue last; it goes first, and the rest can follow.
func (l *Lane) cutLocked(batch []*Call, n int) []*Call {
	kept := l.queue[:0]
	for i, c := range l.queue {
		if n == 0 {
			kept = append(kept, l.queue[i:]...)
			break
		}
		if c.follows() || len(l.held) > 0 && l.heldUpLocked(c.Request) {
			l.holdLocked(c)
			kept = append(kept, c)
			continue
		}
		c.canceled = c.Undoes && c.After != nil && c.After.Err == nil && !c.After.Sent
		c.Unqueued = c.Unqueued && (c.After == nil || c.After.Err == nil && c.After.Reply.Outcome == single.Granted)
		c.After = nil // no longer needed; do not keep it alive
		batch = append(batch, c)
		n--
	}
	clear(l.held)
	clear(l.queue[len(kept):])
	l.queue = kept
	l.queued.Store(int64(len(kept)))
	return batch
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
