package redlock

import (
	"math"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file keeps the order of operations of one hold on each master. The rule: a master is never sent an operation
// before its earlier one for the same hold has ended. What it prevents:
//
//   - A round is won or lost while an acquire is still on its way to a slow master, and the release overtakes it on
//     another connection: the key is set after it was deleted, and nobody owns it. So the release of that master
//     waits for its acquire, however late that ends, while the caller has long returned.
//   - An extension and a release race, and the extension (which repairs) sets the key again.
//   - A caller releases and acquires again at once. Its new acquire would arrive before a release that had to wait for a
//     straggler, and be refused by its own old key. So a release does not wait here but in the master's lane, in its
//     place in the queue.
//   - An acquire timed out. It has ended here, but not on the server: a stopped master still has it in its socket.
//     Such a master is unsure, and after a first confirmed release it is asked once more; see janitor.go.
//
// When a hold is over, each of its masters gets exactly one more operation from here, the release; if that is not
// confirmed, the janitor inherits it.

// slot is one master's part in one hold. The lock's mutex guards it.
type slot struct {
	last   *single.Call // the latest operation, while it has not ended
	dirty  bool         // our key may be there: something that sets it was sent
	unsure bool         // something that sets the key ended without an answer and may still land
	queued bool         // it was refused, and stands in the arrival queue there

	gone     bool // an extension did not find the key there; see repair.go
	doubtful bool // the key has been set again, and it is not known when
}

// fewMasters is up to how many masters a hold and its rounds are allocated in one piece each.
const fewMasters = 5

// issue sends round r to every master, each behind what it is still doing for this hold. The caller holds the mutex;
// issue releases it before it sends.
func (k *Lock) issue(r *round) {
	var ready uint64 // a bit for each master to send to; maxMasters fit
	decided := false
	now := time.Now() // for the deadlines of network calls, which Go's own clock keeps
	behind := k.locker.behind(r, now)
	for i := range k.slots { // nothing is sent before all slots know
		s, b := &k.slots[i], &r.ballots[i]
		switch {
		case r.request.Op == single.Release && k.nothingThere(s, r):
			decided = r.count(i, Refused) || decided
			k.slotClosed()
		case behind&(1<<i) != 0:
			b.Err, b.ended = single.ErrBehind, true
			decided = r.count(i, Unknown) || decided
		default:
			b.Deadline = now.Add(k.spec.timeout)
			b.Unqueued = r.request.Op == single.Release && !k.placed && !s.queued && !s.unsure
			if s.last != nil && !k.locker.opts.Sabotage.UnorderedRelease {
				b.After = s.last
				b.Undoes = r.request.Op == single.Release && !s.dirty && r.request.Waiter == ""
				b.Deadline = b.Deadline.Add(k.spec.timeout) // that one may take all of its own
			}
			s.last = &b.Call
			ready |= 1 << i
		}
	}
	k.mu.Unlock()
	if decided {
		r.announce()
	}
	for i := range r.ballots {
		switch {
		case ready&(1<<i) != 0:
			k.locker.lanes[i].Send(&r.ballots[i].Call)
		case behind&(1<<i) != 0:
			r.observeVote(&r.ballots[i].Call, Unknown)
		}
	}
}

// nothingThere reports that a release need not be sent: there is nothing that it could remove, neither a key nor the
// place in the queue that a lock which was won by the others has still there.
func (k *Lock) nothingThere(s *slot, release *round) bool {
	if s.last != nil {
		return k.locker.opts.Sabotage.DropStragglers
	}
	return !s.dirty && (!s.queued || release.request.Waiter == "")
}

// maxBehind is by how much a master's queue may be longer than twice a quorum's before it is spared acquisitions.
const maxBehind = 20 * time.Millisecond

// behind finds the masters whose queue is much longer than those of the quickest quorum. Rounds are decided by that
// quorum, so under load nothing would keep callers from outrunning the other masters more and more, until these answer
// everything too late. An acquisition that is not sent need not be released either, so sparing them lets them catch up;
// a quorum is always asked. Operations of existing holds are sent in any case.
func (l *Locker) behind(r *round, now time.Time) (masters uint64) {
	if r.request.Op != single.Acquire {
		return 0
	}
	const down = math.MaxInt64 / 4 // such a master refuses at once, which is no quickness
	var space [2 * 9]time.Duration
	waits, worst := space[:0:9], time.Duration(0)
	for _, lane := range l.lanes {
		wait := lane.Backlog(now)
		if lane.Down() {
			wait = down
		} else {
			worst = max(worst, wait)
		}
		waits = append(waits, wait)
	}
	if worst <= maxBehind {
		return 0
	}
	sorted := append(space[9:9], waits...)
	slices.Sort(sorted)
	limit := 2*sorted[r.votes.quorum-1] + maxBehind
	for i, wait := range waits {
		// Far away is not behind. A master that is down is asked by a probe.
		if wait > limit+l.lanes[i].RTT() && wait != down {
			masters |= 1 << i
		}
	}
	return masters
}

// settle notes what a call that has ended did to its master. The caller holds the mutex.
func (k *Lock) settle(c *single.Call) {
	s := &k.slots[c.Index]
	if s.last == c {
		s.last = nil
	}
	switch c.Request.Op {
	case single.Acquire, single.Extend:
		// An acquire that was refused by a client that retries counts as sent: the refusal may be the answer to the second
		// attempt while the first is still under way.
		s.dirty = s.dirty || c.Sent
		s.unsure = s.unsure || c.Unsure()
		if c.Request.Op == single.Acquire {
			s.queued = c.Request.Waiter != "" && c.Err == nil && c.Reply.Outcome == single.Refused
		}
		s.gone = c.Request.Op == single.Extend && gone(c)
	case single.Release: // the last operation: its master has confirmed that the key is gone for good, or the janitor
		// takes over
		if s.dirty && (c.Err != nil || s.unsure) {
			k.locker.broom.inherit(c, s.unsure, lapsed(k.locker.clock.Now(), k.longest, k.locker.opts.DriftFactor))
		}
		s.dirty = false
		k.slotClosed()
	}
}

// slotClosed counts down the masters of a hold that is over; with the last one nothing is left to do for it.
func (k *Lock) slotClosed() {
	k.unclosed--
	if k.unclosed == 0 {
		k.locker.forget(k)
	}
}
