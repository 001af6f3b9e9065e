package hold

import (
	"math"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file keeps the order of operations of one hold on each master. The rule: on each master, an operation of a
// hold is sent only after the earlier one for that hold has ended. The rule prevents:
//
//   - A round is won or lost while an acquire is still on its way to a slow master. The release overtakes the acquire
//     on another connection: the key is set after it was deleted, and has no owner. So the release for that master
//     waits for the acquire, however late that ends, while the caller has long returned.
//   - An extension and a release race, and the extension (which repairs) sets the key again.
//   - A caller releases and acquires again at once. Its new acquire would arrive before a release that had to wait for
//     a straggler, and be refused by its own old key. So a release does not wait here but in the master's lane, at its
//     position there.
//   - An acquire timed out. It has ended here, but not on the server: a stopped master still has the request in its
//     socket. The outcome of such an acquire is unknown. After a first confirmed release, the janitor asks once
//     again; see internal/janitor.
//
// A request that only asks whether the key is there (Lock.Verify) follows the requests before it. No later request
// waits for it, because it changes nothing, whenever it arrives. Otherwise a renewal would wait for every Verify, and
// come too late.
//
// When a hold is over, each of its masters gets exactly one more operation from here, the release; if that is not
// confirmed, the janitor adopts it.

// issueLocked sends the round to every master. On each master, it follows the earlier requests for its hold. A hold
// issues one round under one lock of its mutex.
func (r *round) issueLocked(after *effects) {
	h := r.hold
	decided := false
	now := time.Now() // for the deadlines of network calls, which Go's own clock keeps
	if takes(r.request.Op) && h.terms.Sent.IsZero() {
		h.terms.Sent = now
	}
	behind := uint64(0)
	if r.request.Op == single.Acquire {
		behind = h.env.behind(now)
	}
	for i := range h.states { // nothing is sent before all of them know
		s, b := &h.states[i], &r.ballots[i]
		switch {
		case r.request.Op == single.Release && s.nothingThere():
			decided = r.countLocked(i, Refused) || decided
			if s.queued && r.request.Waiter != "" {
				after.leave(h, r.request.Keys, 1<<i)
			}
			if h.state.Settle() {
				h.env.Registry.Leave(&h.entry)
			}
		case behind&(1<<i) != 0:
			b.Err, b.ended, b.spared = single.ErrBehind, true, true
			decided = r.countLocked(i, Unknown) || decided
		default:
			b.Deadline = now.Add(h.terms.Timeout)
			b.Unqueued = r.request.Op == single.Release && !h.queued && !s.queued && s.trace.Level < Unsure
			if h.state.Held && !takes(r.request.Op) { // a failed attempt is no hold
				b.Timeout = h.terms.Timeout
			}
			if s.last != nil {
				b.After = s.last
				b.Undoes = r.request.Op == single.Release && s.trace.Level < Touched && r.request.Waiter == ""
				// that one may take all of its own
				b.Deadline = b.Deadline.Add(max(h.terms.Timeout, h.env.Lanes[i].Patience()))
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

// askSparedLocked opens a lost round again, and asks masters that it spared, if it can win with them: too many of the
// others have failed since it began.
func (r *round) askSparedLocked(after *effects) (asks bool) {
	h := r.hold
	if r.verdict != NoQuorum || h.state.Over() {
		return false
	}
	deadline := r.sent().Add(h.terms.Timeout)
	masters := r.promptLocked(deadline)
	atBest := r.votes
	atBest.Unknown &^= masters
	atBest.Granted = EveryMaster &^ (atBest.Refused | atBest.Unknown)
	if h.env.Judge(r.request.Op, atBest) != Won {
		return false
	}
	r.verdict, r.votes.Unknown = Open, atBest.Unknown
	for i := range r.ballots {
		if masters&(1<<i) != 0 {
			s, b := &h.states[i], &r.ballots[i]
			b.Err, b.ended, b.spared, b.vote, b.Deadline = nil, false, false, Pending, deadline
			s.last = &b.Call
			s.trace.Setting()
		}
	}
	after.send, after.ready = r, masters
	return true
}

// lateBy is how many times as long as estimated a spared master may take to answer. Behind the request comes its
// release, and the next rounds may need that master too. With more requests than it can answer in time, it answers none
// in time, and the holds that it has lose it.
const lateBy = 3

// promptLocked returns the spared masters that can be expected to answer before the deadline.
func (r *round) promptLocked(deadline time.Time) (masters uint64) {
	now := time.Now()
	for i, lane := range r.hold.env.Lanes {
		if r.ballots[i].spared && lateBy*(lane.Backlog(now)+lane.RTT()) <= deadline.Sub(now) {
			masters |= 1 << i
		}
	}
	return masters
}

// EveryMaster is a bit for each master that there may be.
const EveryMaster = ^uint64(0)

// A master is spared acquisitions when its queue exceeds twice a quorum's queue by more than maxBehind.
const maxBehind = 20 * time.Millisecond

// behind finds the masters with a much longer queue than the quickest quorum. That quorum decides rounds. So under
// load, callers would outrun the other masters more and more, until these answer every request too late. An
// acquisition that is not sent need not be released either, so a spared master can catch up. A quorum always gets the
// request, and if too many of it fail, the others get it too (askSparedLocked). Operations of existing holds are always
// sent.
func (e *Env) behind(now time.Time) (masters uint64) {
	var space [9]time.Duration
	waits, worst := space[:0], time.Duration(0)
	for _, lane := range e.Lanes {
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
	masters = EveryMaster
	for i := range e.Sets { // one that either set needs is asked
		masters &= e.behindIn(&e.Sets[i], waits)
	}
	return masters
}

// downBacklog is the backlog of a master that is down: it refuses at once, and does not count as quick.
const downBacklog = math.MaxInt64 / 4

// behindIn finds the masters that the quickest quorum of one set does not need, including the masters outside the
// set.
func (e *Env) behindIn(set *Set, waits []time.Duration) (masters uint64) {
	var space [9]time.Duration
	sorted := space[:0]
	for i, wait := range waits {
		if set.Members&(1<<i) != 0 {
			sorted = append(sorted, wait)
		}
	}
	slices.Sort(sorted)
	limit := 2*sorted[set.Quorum-1] + maxBehind
	for i, wait := range waits {
		away := e.Lanes[i].RTT() // far away is not behind
		if away == 0 {
			away = e.Lanes[i].Patience() // it may be as far away
		}
		if set.Members&(1<<i) == 0 || wait > limit+away && wait != downBacklog { // one that is down is asked by a probe
			masters |= 1 << i
		}
	}
	return masters
}

// effects lists the work that a change of a hold requires after the hold's mutex has been unlocked: end contexts,
// send requests, notify the observers of a decision. This work must not happen under the mutex. It runs code of
// others, or it takes the mutex again: if a call can't be sent, it ends before Send has returned, and its receiver
// takes the mutex.
//
// The one idiom for it: a function with a name that ends in Locked is called with the mutex held, keeps it, and adds
// to the effects. The function that locked the mutex unlocks it, and then runs the effects.
//
//	var after effects
//	defer after.run()
//	h.mu.Lock()
//	defer h.mu.Unlock()
//	h.overLocked(reason, &after)
type effects struct {
	leaving    leaving          // asks and ends the leaving of its lock
	over       Handle           // of a hold that is over
	reason     error            // why
	late       *round           // whose time is up
	decided    *round           // with observers to tell
	observer   decisionObserver // is to be told of observed
	observed   *round           // was decided before
	send       *round           // is to be sent
	ready      uint64           // a bit for each master to send it to; maxMasters fit
	repairs    []*repair        // are to be sent
	leaver     *Hold            // its Locker leaves the arrival queues of these keys
	leaves     []string
	leavesAt   uint64    // on these masters
	renews     *attended // is to be renewed when it is its turn
	notRenewed *Hold     // its configuration is not known to be current
	unpassed   *Hold     // is not going to be passed on
}

// leave has h's Locker leave the arrival queues of keys on masters. Close waits for that, also if h has nothing else
// left to do.
func (e *effects) leave(h *Hold, keys []string, masters uint64) {
	if e.leaver == nil {
		h.env.Registry.Begin()
	}
	e.leaver, e.leaves, e.leavesAt = h, keys, e.leavesAt|masters
}

// run performs the effects. No mutex is held. When a hold is over, the code that depends on it learns this before the
// first master does.
func (e *effects) run() {
	if e.leaving.hold != nil {
		e.leaving.ask()
	}
	if e.over != nil {
		e.over.Over(e.reason)
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
	if e.leaving.hold != nil {
		e.leaving.end()
	}
	if e.unpassed != nil {
		if p := &e.unpassed.passing; e.unpassed.env.Now() < p.ends {
			e.unpassed.env.NotPassed(e.unpassed.terms.Keys[0], p.ends)
		}
	}
	if e.send != nil {
		lanes := e.send.hold.env.Lanes
		for i := range e.send.ballots {
			if e.ready&(1<<i) != 0 {
				lanes[i].Send(&e.send.ballots[i].Call)
			}
		}
	}
	for _, p := range e.repairs {
		p.hold.env.Lanes[p.Index].Send(&p.Call)
	}
	if e.leaver != nil {
		behind := e.leaver
		if e.send != nil {
			behind = nil // the release comes behind what is on its way
		}
		e.leaver.env.Depart(e.leaver.terms, e.leaves, behind, e.leavesAt)
		e.leaver.env.Registry.Done()
	}
	if e.notRenewed != nil && e.notRenewed.env.Watch != nil {
		e.notRenewed.env.NotRenewed(e.notRenewed)
	}
	if e.renews != nil {
		e.renews.env.Renewals.Enter(e.renews)
	}
}
