package janitor

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// This file takes the process out of masters' queues that it could not leave at once. A key is at stake nowhere: an
// entry that stays costs others a moment, and lapses. So no event reports it, and Close does not wait long for it.

// EntryKept is for how long masters keep an entry that is not renewed.
const EntryKept = time.Minute

// maxSilent is how often in a row a master may give no answer to leaves while the Janitor drains. Then it is not asked
// again.
const maxSilent = 3

// leaves reports that p only takes the process out of queues.
func (p *pending) leaves() bool { return p.Request.Op == single.Leave }

// repeatsLocked reports that the same leave is pending already.
func (j *Janitor) repeatsLocked(p *pending) bool {
	return slices.ContainsFunc(j.pending[p.Index], func(other *pending) bool {
		return other.leaves() && other.Request.Stays == p.Request.Stays &&
			slices.Equal(other.Request.Keys, p.Request.Keys)
	})
}

// leavesLocked counts the leaves of master i.
func (j *Janitor) leavesLocked(i int) (n int) {
	for _, p := range j.pending[i] {
		if p.leaves() {
			n++
		}
	}
	return n
}

// unclaimed returns the keys whose entries are not in use: no caller of this Locker waits for them.
func (j *Janitor) unclaimed(keys []string) []string {
	if j.Unclaimed == nil {
		return keys
	}
	return j.Unclaimed(keys)
}

// uselessLocked reports that a leave is not worth another question: its entry is in use again, or the Janitor drains
// and the master is silent.
func (j *Janitor) uselessLocked(p *pending) bool {
	return len(j.unclaimed(p.Request.Keys)) == 0 ||
		j.draining && (j.silent[p.Index].times >= maxSilent || j.Down(p.Index))
}

// silence is how often in a row a master has not answered leaves while the Janitor drained. Leaves that were on their
// way at the same time count once.
type silence struct {
	times int
	ended time.Duration // when the latest such leave was given up
}

// hearLocked notes whether the master has answered a leave while the Janitor drains.
func (j *Janitor) hearLocked(p *pending) {
	silent, asked := &j.silent[p.Index], p.due-Interval
	switch {
	case p.Err == nil:
		*silent = silence{}
	case j.draining && p.leaves() && asked >= silent.ended:
		*silent = silence{silent.times + 1, j.Now()}
	}
}

// leaveTooLocked has a release take the process out of the queues, too, where an acquisition may land late and have
// entered them. Where somebody here waits for some of its keys, the others are left behind it.
func (j *Janitor) leaveTooLocked(p *pending) {
	if !p.landing || p.Request.Waiter != "" || j.Waiter == "" {
		return
	}
	again := p.plain()
	again.Waiter = j.Waiter
	switch unclaimed := j.unclaimed(again.Keys); len(unclaimed) {
	case 0:
	case len(again.Keys):
		again.Keep, again.KeepAs = p.Request.Keep, p.Request.KeepAs
		p.Request = &again
	default:
		again.Op, again.Keys, again.Owner = single.Leave, unclaimed, ""
		leave := lane.Call{Call: single.Call{Request: &again}, Index: p.Index}
		j.adoptLocked(&leave, false, j.Now()+EntryKept, 0)
	}
}

// plain is the request without what was prepared for it, and without Keep.
func (p *pending) plain() single.Request {
	r := p.Request
	return single.Request{
		Op: r.Op, Kind: r.Kind, Keys: r.Keys, Owner: r.Owner, Hold: r.Hold, TTL: r.TTL, Waiter: r.Waiter,
		Reserve: r.Reserve,
	}
}
