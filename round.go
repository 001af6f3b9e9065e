package redlock

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// round is one operation of one hold, sent to every master in parallel. The lease's mutex guards its fields. Calls in
// flight belong to their lane until they have ended.
//
// A round is decided once, by the first vote that settles it or by its timeout. Votes that arrive later are
// stragglers: they change nothing here, but the lock's master states record their effects on the masters.
type round struct {
	lock      *Lock
	request   single.Request
	start     time.Duration // the clock before the first byte was sent
	ballots   []ballot
	votes     tally
	verdict   verdict
	repairs   bool               // if it is won, masters that have lost the key get it back
	hurried   bool               // it waits no longer for masters that are late; see try.go
	verifies  bool               // it asks whether the key is there, by an extension that extends nothing
	observer  decisionObserver   // told once, when the round is decided; may be nil
	observers []decisionObserver // others, which were added later
}

// ballot is one master's part of a round.
type ballot struct {
	lane.Call
	vote  Vote
	ended bool // the call is over and its result may be read
}

// decisionObserver is notified when a round has been decided. It is called without the lock's mutex, from any
// goroutine.
type decisionObserver interface{ onDecided(*round) }

// newRoundLocked prepares an operation. Nothing is sent yet.
func (k *Lock) newRoundLocked(request single.Request, observer decisionObserver) *round {
	n := len(k.states)
	var r *round
	if n <= fewMasters {
		few := new(struct {
			round
			ballots [fewMasters]ballot
		})
		r, few.round.ballots = &few.round, few.ballots[:n]
	} else {
		r = &round{ballots: make([]ballot, n)}
	}
	r.lock, r.request, r.observer = k, request, observer
	// Under load most releases, and acquisitions of several keys, travel in bundles. A bundle needs no preparation
	// here.
	mayBundle := request.Op == single.Release || request.Op == single.Acquire && len(request.Keys) > 1
	if !mayBundle || !k.locker.lanes[0].Queued() {
		k.locker.prepare(&r.request)
	}
	for i := range r.ballots {
		c := &r.ballots[i].Call
		c.Request, c.Index, c.To = &r.request, i, r
	}
	r.start = k.locker.clock.Now()
	return r
}

// validUntil is the bound that winning this round earns.
func (r *round) validUntil() time.Duration {
	return validUntil(r.start, r.request.TTL, r.lock.locker.opts.DriftFactor)
}

// judge returns the verdict of the votes so far in these sets: in all sets, or in a single one.
func (r *round) judge(sets electorates) verdict {
	switch r.request.Op {
	case single.Acquire, single.Transfer, single.Raise:
		return sets.acquired(&r.votes)
	case single.Inspect:
		return r.inspected(sets)
	case single.Release:
		return sets.released(&r.votes)
	default:
		return sets.extended(&r.votes)
	}
}

// countLocked enters one master's vote and reports whether it decided the round. A round that is decided counts no
// more.
func (r *round) countLocked(i int, v Vote) bool {
	if r.verdict != open || r.ballots[i].vote != Pending {
		return false
	}
	r.ballots[i].vote = v
	r.votes.add(i, v)
	r.verdict = r.judge(r.lock.locker.sets)
	return r.verdict != open
}

// voteOf reads the vote from a call that has ended. If a key was set again at an unknown time, it is no vote for
// continuity.
func (r *round) voteOf(c *lane.Call) Vote {
	switch {
	case c.Err != nil:
		return Unknown
	case r.request.Op == single.Raise && c.Reply.Token != r.request.Token:
		return Refused
	case r.continuityUnknown(c):
		return Unknown
	case c.Reply.Outcome == single.Granted:
		return Granted
	default:
		return Refused
	}
}

// Ended implements [lane.Receiver]: the call to one master has ended, in time or as a straggler.
func (r *round) Ended(c *lane.Call) {
	var after effects
	defer after.run()
	k := r.lock
	k.mu.Lock()
	defer k.mu.Unlock()
	r.ballots[c.Index].ended = true
	if r.request.Fence || r.request.Op == single.Raise || r.request.Op == single.Transfer {
		k.locker.tokens.Observe(c.Reply.Token)
		k.spec.noteCounter(c)
		r.noteRetentionLocked()
	}
	vote := r.voteOf(c)
	r.observeVote(c, vote)
	if r.request.Op != single.Release { // which may have been canceled
		k.spec.complaints.note(k.locker, c, k.spec.timeout)
	}
	if vote == Refused && r.request.Op == single.Acquire {
		k.spec.contest.note(k, c)
	}
	if r.countLocked(c.Index, vote) {
		after.decided = r
	}
	if r.request.Op == single.Acquire {
		r.hurryLocked()
	}
	if strays(&k.states[c.Index], c) {
		after.leave(k, c.Request.Keys, 1<<c.Index)
	}
	if !r.verifies {
		k.settleLocked(c)
	}
	if r.repairs {
		after.repairs = k.repairsLocked(r)
	}
}

// expire counts every vote still missing as unknown: the round's time is up.
func (r *round) expire() {
	var after effects
	defer after.run()
	r.lock.mu.Lock()
	defer r.lock.mu.Unlock()
	for i := range r.ballots {
		if r.countLocked(i, Unknown) {
			after.decided = r
		}
	}
}

// addObserverLocked adds an observer of the decision, and reports false if the round has already been decided.
func (r *round) addObserverLocked(d decisionObserver) bool {
	if r.verdict != open {
		return false
	}
	r.observers = append(r.observers, d)
	return true
}

// announce notifies the observers. A decided round gets no more observers, so the observers can be read without the
// mutex.
func (r *round) announce() {
	r.observe()
	if r.request.Op == single.Release {
		r.lock.locker.released(r)
	}
	if r.observer != nil {
		r.observer.onDecided(r)
	}
	for _, d := range r.observers {
		d.onDecided(r)
	}
}

var errNoAnswer = errors.New("no answer in time")

// decisive is the set that the round's verdict comes from: of two sets of masters, the first that it is the verdict of.
func (r *round) decisive() *electorate {
	sets := r.lock.locker.sets
	for i := range sets {
		if r.judge(sets[i:i+1]) == r.verdict {
			return &sets[i]
		}
	}
	return &sets[0]
}

// refusal returns the failure of a round that masters have denied.
func (r *round) refusal() failureKind {
	if r.request.Op == single.Acquire {
		return failHeld
	}
	return failNotHeld
}

// resultLocked is nil of a round that was won, and otherwise why it was not: refusal where masters have denied it.
func (r *round) resultLocked(refusal failureKind) *failure {
	switch r.verdict {
	case won:
		return nil
	case denied:
		return failedVotes(refusal, r.failureLocked(failureReasons[refusal]))
	default:
		return failedVotes(failUnreached, r.unreachedLocked(r.decisive()))
	}
}

// failureLocked is the round's result as an error that a caller can act on.
func (r *round) failureLocked(reason error) *QuorumError {
	return r.failureInLocked(r.decisive(), reason)
}

// failureInLocked is a failure of one set of masters.
func (r *round) failureInLocked(set *electorate, reason error) *QuorumError {
	return &QuorumError{
		Set:     set.name,
		Op:      r.opName(),
		Key:     r.lock.locker.listed(r.request.Keys),
		Granted: set.of(r.votes.granted),
		Quorum:  set.quorum,
		N:       set.n,
		Nodes:   r.nodesLocked(set.members),
		Reason:  reason,
	}
}

// valueSeed seeds the hashes that compare owner values where the values must not be kept.
var valueSeed = maphash.MakeSeed()

// ownerHash tells an owner from others; 0 means no owner. Masters cut very long owners off.
func ownerHash(owner string) uint64 {
	if owner == "" {
		return 0
	}
	return max(1, maphash.String(valueSeed, owner[:min(len(owner), maxTold)]))
}

// maxTold is the length to which masters shorten an owner value in replies; the scripts know it, too.
const maxTold = 16 << 10

// nodesLocked returns the answer of each of these masters.
func (r *round) nodesLocked(members uint64) []NodeResult {
	nodes := make([]NodeResult, 0, len(r.ballots))
	for i := range r.ballots {
		if members&(1<<i) == 0 {
			continue
		}
		b := &r.ballots[i]
		node := NodeResult{Master: r.lock.locker.names[i], Vote: b.vote}
		switch {
		case b.vote == Unknown && b.ended && b.Err != nil:
			node.Err = b.Err
		case b.vote == Unknown && b.ended && r.continuityUnknown(&b.Call):
			node.Err = errContinuityUnknown
		case b.vote == Unknown:
			node.Err = errNoAnswer
		case b.vote != Pending && b.ended:
			node.TTL, node.Holder, node.value = b.Reply.TTL, owner.Show(b.Reply.Holder), ownerHash(b.Reply.Holder)
			node.kept, node.claims = owner.Kept(b.Reply.Holder), b.Reply.Claimed
			if len(r.request.Keys) > 1 {
				node.Key = r.lock.locker.shown(b.Reply.Key)
			}
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// roundWait is the wait of one goroutine for a round to be decided. It is reused where nothing can signal it any more.
type roundWait struct {
	signals chan signal // of capacity 2: each comes once at the most
	timer   Timer
	quiet   bool // nothing will signal it
}

// signal is an event that ends the wait of a roundWait. Both kinds come by one channel, because to select among many
// costs more than the wait.
type signal uint8

const (
	isDecided signal = iota
	isLate
)

// newRoundWait returns a roundWait that may have been used before; recycle takes it back.
func (l *Locker) newRoundWait() *roundWait {
	if w, ok := l.spare.Get().(*roundWait); ok {
		return w
	}
	return &roundWait{signals: make(chan signal, 2), quiet: true}
}

func (l *Locker) recycle(w *roundWait) {
	if w.quiet {
		l.spare.Put(w)
	}
}

// onDecided implements decisionObserver.
func (w *roundWait) onDecided(*round) { w.signals <- isDecided }

// wait returns nil when r has been decided, by its votes or because timeout has passed; an error when ctx is done
// before that.
func (w *roundWait) wait(ctx context.Context, timeout time.Duration, r *round) error {
	w.quiet = false
	if clock := r.lock.locker.clock; w.timer == nil {
		w.timer = clock.AfterFunc(timeout, func() { w.signals <- isLate })
	} else {
		w.timer.Reset(timeout)
	}
	select {
	case s := <-w.signals:
		if s == isLate {
			r.expire()
			<-w.signals
			w.quiet = true
			return nil
		}
		w.quiet = w.timer.Stop()
		return nil
	case <-ctx.Done():
		stopped := w.timer.Stop()
		for {
			select {
			case s := <-w.signals:
				if s == isDecided { // both at once: what was decided counts
					w.quiet = stopped
					return nil
				}
			default:
				return ended(ctx)
			}
		}
	}
}
