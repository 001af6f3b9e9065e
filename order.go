package redlock

import (
	"math"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
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
//     straggler, and be refused by its own old key. So a release does not wait here but in the master's lane, at its
//     position there.
//   - An acquire timed out. It has ended here, but not on the server: a stopped master still has it in its socket.
//     The outcome of such an acquire is unknown, and after a first confirmed release it is asked once more; see internal/janitor.
//
// What only asks whether the key is there (Lock.Verify) follows what was sent before it, and nothing follows that: it changes
// nothing, whenever it arrives. Otherwise a renewal would wait for all who ask, and come too late.
//
// When a hold is over, each of its masters gets exactly one more operation from here, the release; if that is not
// confirmed, the janitor adopts it.

// issueLocked has round r sent to every master, each behind what it is still doing for this hold. A hold issues one round
// under one lock of its mutex.
func (k *Lock) issueLocked(r *round, after *effects) {
	decided := false
	now := time.Now() // for the deadlines of network calls, which Go's own clock keeps
	if takes(r.request.Op) && k.spec.sent.IsZero() {
		k.spec.sent = now
	}
	behind := uint64(0)
	if r.request.Op == single.Acquire {
		behind = k.locker.behind(now)
	}
	for i := range k.states { // nothing is sent before all of them know
		s, b := &k.states[i], &r.ballots[i]
		switch {
		case r.request.Op == single.Release && s.nothingThere():
			decided = r.countLocked(i, Refused) || decided
			if k.state.Settle() {
				k.locker.forget(k)
			}
			if s.queued && r.request.Waiter != "" {
				after.leave(k, r.request.Keys, 1<<i)
			}
		case behind&(1<<i) != 0:
			b.Err, b.ended = single.ErrBehind, true
			decided = r.countLocked(i, Unknown) || decided
			r.observeVote(&b.Call, Unknown)
		default:
			b.Deadline = now.Add(k.spec.timeout)
			b.Unqueued = r.request.Op == single.Release && !k.queued && !s.queued && s.trace.Level < hold.Unsure
			if k.state.Held && !takes(r.request.Op) { // a failed attempt is no hold
				b.Timeout = k.spec.timeout
			}
			if s.last != nil {
				b.After = s.last
				b.Undoes = r.request.Op == single.Release && s.trace.Level < hold.Touched && r.request.Waiter == ""
				b.Deadline = b.Deadline.Add(max(k.spec.timeout, k.locker.lanes[i].Patience())) // that one may take all of its own
			}
			if !r.verifies {
				s.last = &b.Call
				if sets(&b.Call) {
					s.trace.Setting()
				}
			}
			after.ready |= 1 << i
		}
	}
	after.send = r
	if decided {
		after.decided = r
	}
}

// maxBehind is by how much a master's queue may be longer than twice a quorum's before it is spared acquisitions.
const maxBehind = 20 * time.Millisecond

// behind finds the masters whose queue is much longer than those of the quickest quorum. Rounds are decided by that
// quorum, so under load nothing would keep callers from outrunning the other masters more and more, until these answer
// everything too late. An acquisition that is not sent need not be released either, so sparing them lets them catch up;
// a quorum is always asked. Operations of existing holds are sent in any case.
func (l *Locker) behind(now time.Time) (masters uint64) {
	var space [9]time.Duration
	waits, worst := space[:0], time.Duration(0)
	for _, lane := range l.lanes {
		wait := lane.Backlog(now)
		if lane.Down() {
			wait = downBacklog
		} else {
			worst = max(worst, wait)
		}
		waits = append(waits, wait)
	}
	if worst <= maxBehind {
		return 0
	}
	masters = everyMaster
	for i := range l.sets { // one that either set needs is asked
		masters &= l.behindIn(&l.sets[i], waits)
	}
	return masters
}

// downBacklog is that of a master that is down: it refuses at once, and does not count as quick.
const downBacklog = math.MaxInt64 / 4

// behindIn finds the masters that the quickest quorum of one set can do without, those outside of it among them.
func (l *Locker) behindIn(set *electorate, waits []time.Duration) (masters uint64) {
	var space [9]time.Duration
	sorted := space[:0]
	for i, wait := range waits {
		if set.members&(1<<i) != 0 {
			sorted = append(sorted, wait)
		}
	}
	slices.Sort(sorted)
	limit := 2*sorted[set.quorum-1] + maxBehind
	for i, wait := range waits {
		away := l.lanes[i].RTT() // far away is not behind
		if away == 0 {
			away = l.lanes[i].Patience() // it may be as far away
		}
		if set.members&(1<<i) == 0 || wait > limit+away && wait != downBacklog { // one that is down is asked by a probe
			masters |= 1 << i
		}
	}
	return masters
}

// effects is what a change of a hold leaves to be done once the hold's mutex has been given up: to end contexts, to send
// requests, to tell the observers of a decision. None of that may happen under the mutex, because it runs code of others, or
// comes back: a call that can't be sent ends before Send has returned, and its receiver takes the mutex.
//
// The one idiom for it: a function whose name ends in Locked is called with the mutex held, keeps it, and adds to the
// effects. Whoever locked the mutex unlocks it, and then runs them.
//
//	var after effects
//	defer after.run()
//	k.mu.Lock()
//	defer k.mu.Unlock()
//	k.overLocked(reason, &after)
type effects struct {
	leaving  leaving          // asks and ends the leaving of its lock
	reason   error            // why the contexts end
	contexts []*lockContext   // of a hold that is over
	late     *round           // whose time is up
	decided  *round           // whose observers are to be told
	observer decisionObserver // is to be told of observed
	observed *round           // was decided before
	send     *round           // is to be sent
	ready    uint64           // a bit for each master to send it to; maxMasters fit
	repairs  []*repair        // are to be sent
	leaver   *Lock            // its Locker leaves the arrival queues of these keys
	leaves   []string
	leavesAt uint64 // on these masters
	renews   *Lock  // is to be renewed when it is its turn
	unpassed *Lock  // is not going to be passed on
}

// leave has k's Locker leave the arrival queues of keys on masters.
func (e *effects) leave(k *Lock, keys []string, masters uint64) {
	e.leaver, e.leaves, e.leavesAt = k, keys, e.leavesAt|masters
}

// run does what is left to do. No mutex is held. Whoever depends on a hold that is over is told before its first master is.
func (e *effects) run() {
	if e.leaving.lock != nil {
		e.leaving.ask()
	}
	for _, c := range e.contexts {
		c.cancel(e.reason)
	}
	if e.late != nil {
		e.late.expire()
	}
	if e.decided != nil {
		e.decided.announce()
	}
	if e.observer != nil {
		e.observer.onDecided(e.observed)
	}
	if e.leaving.lock != nil {
		e.leaving.end()
	}
	if e.unpassed != nil {
		e.unpassed.notPassed()
	}
	if e.send != nil {
		lanes := e.send.lock.locker.lanes
		for i := range e.send.ballots {
			if e.ready&(1<<i) != 0 {
				lanes[i].Send(&e.send.ballots[i].Call)
			}
		}
	}
	for _, p := range e.repairs {
		p.lock.locker.lanes[p.Index].Send(&p.Call)
	}
	if e.leaver != nil {
		behind := e.leaver
		if e.send != nil {
			behind = nil // the release comes behind what is on its way
		}
		e.leaver.locker.depart(e.leaver.spec, e.leaves, behind, e.leavesAt)
	}
	if e.renews != nil {
		e.renews.locker.renewals.Enter(e.renews)
	}
}
