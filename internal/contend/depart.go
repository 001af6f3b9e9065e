package contend

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/janitor"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// This file takes the Locker out of the masters' queues. When Close has returned nil, no master that answers has an
// entry or a claim of this Locker. An entry or a claim could stay in these ways:
//
//   - The request that leaves the queue is lost, or its master does not answer. The janitor repeats the request.
//   - A lock was won on other masters than the master with the entry. That master refused the latest attempt, or it
//     refused an earlier attempt and never received the latest. There is no key to release on it, so the Locker sends
//     it a request to leave the queue instead (internal/hold keeps the masters).
//   - An attempt without an answer reaches its master after the request that leaves. The janitor then releases the
//     key that the attempt may have set, and its release leaves the queue, too. An attempt with an answer does not
//     arrive late: the lane keeps the order.
//   - The process waits for several keys, and moves from the queue of one key to the queue of another. Its claims
//     stay until the wait ends.

// departure takes the Locker out of the arrival queues of some keys. If a release has already notified the Locker,
// the notification goes to the next waiter. Only time depends on this: a lost notification costs other waiters a
// pause.
//
// Another goroutine of this Locker may begin to wait for a key while a departure from its queue is under way. If a
// master is some milliseconds away, the two requests travel on different connections. The refused attempt may then
// arrive first, and the departure removes its entry. So that goroutine checks its position again when a quorum has
// answered the departure, and when all masters have.
type departure struct {
	crowd   *Crowd
	request single.Request
	calls   []lane.Call
	open    atomic.Int32  // calls that have not ended
	ended   atomic.Uint64 // a bit for each master with an ended call
}

// Depart leaves the arrival queues of keys on masters, in the background. If there was an attempt, after is its lock.
// On each master the request to leave follows the requests of that attempt: a refusal that came later would enter the
// queue again. Close waits for it. If other goroutines of this Locker wait for some of the keys together with others,
// the claims on these keys stay.
//
// The request that a call follows must be in its lane, though not in first place. Until that request comes, the lane
// delays other requests for the key, but not requests of the same owner: neither its release nor its departure (see
// internal/lane).
func (c *Crowd) Depart(t *hold.Terms, keys []string, after *hold.Hold, masters uint64) {
	goes, stays := c.Roaming(keys)
	if len(goes) > 0 {
		newDeparture(c, t, goes, false, after).send(masters)
	}
	if len(stays) > 0 {
		newDeparture(c, t, stays, true, after).send(masters)
	}
}

func newDeparture(c *Crowd, t *hold.Terms, keys []string, stays bool, after *hold.Hold) *departure {
	d := &departure{crowd: c, calls: make([]lane.Call, len(c.env.Lanes))}
	d.request = single.Request{
		Op: single.Leave, Kind: t.Kind, Keys: keys, TTL: t.TTL, Waiter: c.ID, Reserve: c.Reserve(), Stays: stays,
	}
	c.env.Prepare(&d.request)
	deadline := time.Now().Add(t.Timeout)
	for i := range d.calls {
		d.calls[i].Request, d.calls[i].Index, d.calls[i].To, d.calls[i].Deadline = &d.request, i, d, deadline
	}
	if after != nil {
		after.Follow(d.calls, t.Timeout)
	}
	return d
}

// send sends the calls to these masters.
func (d *departure) send(masters uint64) {
	masters &= hold.EveryMaster >> (64 - len(d.calls))
	d.open.Store(int32(bits.OnesCount64(masters)))
	d.crowd.env.Registry.Begin()
	for i := range d.calls {
		if masters&(1<<i) != 0 {
			d.crowd.env.Lanes[i].Send(&d.calls[i])
		}
	}
}

// Ended implements [lane.Receiver]. A waiter of this process that came during the departure tries again when a
// majority of the leaves has ended, and again when all have. A leave may have removed this Locker after that waiter's
// attempt had entered it. And a master that granted the attempt the key did not enter it.
func (d *departure) Ended(c *lane.Call) {
	crowd := d.crowd
	if c.Err != nil {
		crowd.env.Janitor.Adopt(c, false, crowd.env.Now()+janitor.EntryKept, 0)
	}
	before := d.ended.Or(1 << c.Index)
	left, last := crowd.env.Majority, d.open.Add(-1) == 0
	if last || left(before|1<<c.Index) && !left(before) {
		crowd.LookAt(d.request.Keys)
	}
	if last {
		crowd.env.Registry.Done()
	}
}
