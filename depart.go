package redlock

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// This file takes the Locker out of the masters' queues. When Close has returned nil, no master that answers has an entry or a claim of
// it. The ways in which one could stay:
//
//   - The request that leaves the queue is lost, or its master does not answer. The janitor repeats the request.
//   - A lock was won on other masters than the one that has the entry: the latest attempt was refused there, or never came there and
//     an earlier one was refused. There is nothing to release, so it is left instead (masterState.queued).
//   - An attempt without an answer reaches its master after the request that leaves. The janitor's release of what it may have set leaves the
//     queue, too. One with an answer does not: the lane keeps their order.
//   - The process waits for several keys, and leaves one of their queues for another one's. Its claims stay meanwhile, and go with its wait.

// departure takes the Locker out of the arrival queues of some keys. A release that has notified it already is passed on to
// the next waiter. Nothing depends on it but time: a notification in vain costs others a pause.
//
// Somebody else may begin to wait for a key here while its departure is under way. On a master that is some milliseconds away the two travel on
// different connections, so its refused attempt may come first and be undone by the departure. So it looks again
// when a quorum has been left, and when all have.
type departure struct {
	locker  *Locker
	request single.Request
	calls   []lane.Call
	open    atomic.Int32  // calls that have not ended
	ended   atomic.Uint64 // a bit for each master with an ended call
}

// depart leaves the arrival queues of keys on masters, in the background. On each master it follows what the attempt after, if there
// was one, is still doing there: a refusal that came later would enter the queue again. Close waits for it. Claims on keys that
// somebody here waits for together with others stay.
//
// Whatever a call follows must come to its lane. It need not come first: the lane holds up the key for everybody else until
// then, but not for the owner of the call that is followed, be that a release or a departure (see internal/lane).
func (l *Locker) depart(s *spec, keys []string, after *Lock, masters uint64) {
	goes, stays := l.queue.Roaming(keys)
	if len(goes) > 0 {
		newDeparture(l, s, goes, false, after).send(masters)
	}
	if len(stays) > 0 {
		newDeparture(l, s, stays, true, after).send(masters)
	}
}

func newDeparture(l *Locker, s *spec, keys []string, stays bool, after *Lock) *departure {
	d := &departure{locker: l, calls: make([]lane.Call, len(l.lanes))}
	d.request = single.Request{Op: single.Leave, Kind: s.kind, Keys: keys, TTL: s.ttl, Waiter: l.id, Reserve: l.reserve(), Stays: stays}
	for _, p := range l.preparers {
		p.Prepare(&d.request)
	}
	deadline := time.Now().Add(s.timeout)
	for i := range d.calls {
		d.calls[i].Request, d.calls[i].Index, d.calls[i].To, d.calls[i].Deadline = &d.request, i, d, deadline
	}
	if after != nil {
		after.mu.Lock()
		for i := range d.calls {
			if last := after.states[i].last; last != nil {
				d.calls[i].After, d.calls[i].Deadline = last, deadline.Add(max(s.timeout, l.lanes[i].Patience()))
			}
		}
		after.mu.Unlock()
	}
	return d
}

// send sends the calls to these masters.
func (d *departure) send(masters uint64) {
	masters &= everyMaster >> (maxMasters - len(d.calls))
	d.open.Store(int32(bits.OnesCount64(masters)))
	d.locker.busy.Add(1)
	for i := range d.calls {
		if masters&(1<<i) != 0 {
			d.locker.lanes[i].Send(&d.calls[i])
		}
	}
}

// Ended implements [lane.Receiver]. A waiter of this process that came during the departure tries again when a
// majority of the leaves has ended, and again when all have. A leave may have removed this Locker after that waiter's
// attempt had entered it. And a master that granted the attempt the key did not enter it.
func (d *departure) Ended(c *lane.Call) {
	l := d.locker
	if c.Err != nil {
		l.janitor.Adopt(c, false, l.clock.Now()+janitor.EntryKept, 0)
	}
	before := d.ended.Or(1 << c.Index)
	left, last := l.sets.majority, d.open.Add(-1) == 0
	if last || left(before|1<<c.Index) && !left(before) {
		l.queue.Dequeued(d.request.Keys)
	}
	if last {
		l.notBusy()
	}
}

// queuedOn is the masters in whose queues the Locker may stand on account of the lease, or of what came before it.
func (e *lease) queuedOn() (masters uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.states {
		if s := &e.states[i]; s.queued || s.last != nil && e.waiterID != "" {
			masters |= 1 << i
		}
	}
	return masters
}

// queueOn notes that the Locker may stand in the queues of these masters.
func queueOn(states []masterState, masters uint64) {
	for i := range states {
		states[i].queued = states[i].queued || masters&(1<<i) != 0
	}
}
