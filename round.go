package redlock

import (
	"errors"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// round is one operation of one hold, sent to every master in parallel. All its fields are guarded by the lock's
// mutex, except that calls in flight belong to their lane until they have ended.
//
// A round is decided once, by the first vote that settles it or by its timeout. Votes that arrive later are stragglers:
// they change nothing here, but the lock's slots take note of what they did to their master.
type round struct {
	lock    *Lock
	request single.Request
	start   time.Duration // the clock before the first byte was sent
	ballots []ballot
	votes   tally
	verdict verdict
	mends   bool      // if it is won, masters that have lost the key get it back
	tell    decider   // told once, when the round is decided
	more    []decider // others who asked to be told
}

// ballot is one master's part of a round.
type ballot struct {
	single.Call
	vote  Vote
	ended bool // the call is over and its result may be read
}

// decider is told when a round has been decided. It is called without the lock's mutex, from any goroutine.
type decider interface{ decided(*round) }

// newRound prepares an operation; the caller holds the lock's mutex, or is the only one to know the lock.
func (k *Lock) newRound(request single.Request, tell decider) *round {
	n := len(k.slots)
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
	r.lock, r.request, r.votes, r.tell = k, request, newTally(n), tell
	if k.locker.opts.Sabotage.HalfQuorum {
		r.votes.quorum = max(1, n/2)
	}
	// Under load most releases travel in bundles, for which nothing is made beforehand.
	if request.Op != single.Release || !k.locker.lanes[0].Queued() {
		for _, p := range k.locker.preparers {
			p.Prepare(&r.request)
		}
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
	opts := &r.lock.locker.opts
	start, ttl := r.start, r.request.TTL
	if opts.Sabotage.BoundFromNow {
		start = r.lock.locker.clock.Now()
	}
	if opts.Sabotage.NoDrift {
		return start + ttl
	}
	return validUntil(start, ttl, opts.DriftFactor)
}

// judge says what the votes so far amount to.
func (r *round) judge() verdict {
	switch r.request.Op {
	case single.Acquire, single.Raise:
		return r.votes.acquired()
	case single.Inspect:
		return r.inspected()
	case single.Release:
		return r.votes.released()
	default:
		return r.votes.extended()
	}
}

// count enters one master's vote and reports whether it decided the round. A round that is decided counts no more.
func (r *round) count(i int, v Vote) bool {
	if r.verdict != open || r.ballots[i].vote != Pending {
		return false
	}
	r.ballots[i].vote = v
	r.votes.add(v)
	r.verdict = r.judge()
	return r.verdict != open
}

// voteOf reads the vote from a call that has ended. A key that was set again, nobody knows when, is no vote for
// continuity.
func (r *round) voteOf(c *single.Call) Vote {
	switch {
	case c.Err != nil:
		return Unknown
	case r.request.Op == single.Raise && c.Reply.Token != r.request.Token:
		return Refused
	case r.doubts(c):
		return Unknown
	case c.Reply.Outcome == single.Granted:
		return Granted
	case c.Reply.Outcome == single.Repaired && r.lock.locker.opts.Sabotage.CountRepairs:
		return Granted
	default:
		return Refused
	}
}

// Ended implements [single.Receiver]: the call to one master has ended, in time or as a straggler.
func (r *round) Ended(c *single.Call) {
	k := r.lock
	k.mu.Lock()
	r.ballots[c.Index].ended = true
	if r.request.Fence || r.request.Op == single.Raise {
		k.locker.seen(c.Reply.Token)
		r.noteRetention()
	}
	vote := r.voteOf(c)
	decided := r.count(c.Index, vote)
	k.settle(c)
	repairs := k.mend(r)
	k.mu.Unlock()
	r.observeVote(c, vote)
	if decided {
		r.announce()
	}
	for _, p := range repairs {
		k.locker.lanes[p.Index].Send(&p.Call)
	}
}

// expire counts every vote still missing as unknown: the round's time is up.
func (r *round) expire() {
	k := r.lock
	k.mu.Lock()
	decided := false
	for i := range r.ballots {
		decided = r.count(i, Unknown) || decided
	}
	k.mu.Unlock()
	if decided {
		r.announce()
	}
}

// join asks to be told of the decision, and reports false when it has been taken already. The caller holds the lock's
// mutex.
func (r *round) join(d decider) bool {
	if r.verdict != open {
		return false
	}
	r.more = append(r.more, d)
	return true
}

// announce tells of the decision. Nobody joins a decided round, so who is to be told can be read without the mutex.
func (r *round) announce() {
	r.observe()
	if r.request.Op == single.Release {
		r.lock.locker.lines.released(r)
	}
	if r.tell != nil {
		r.tell.decided(r)
	}
	for _, d := range r.more {
		d.decided(r)
	}
}

var errNoAnswer = errors.New("no answer in time")

// failure is the round's result as an error that a caller can act on. The caller holds the lock's mutex.
func (r *round) failure(reason error) *QuorumError {
	return &QuorumError{
		Op:      opNames[r.request.Op],
		Key:     strings.Join(r.request.Keys, ","),
		Granted: r.votes.granted,
		Quorum:  r.votes.quorum,
		N:       r.votes.n,
		Nodes:   r.nodes(),
		Reason:  reason,
	}
}

// nodes is what each master said. The caller holds the lock's mutex.
func (r *round) nodes() []NodeResult {
	nodes := make([]NodeResult, len(r.ballots))
	for i := range r.ballots {
		b := &r.ballots[i]
		node := NodeResult{Master: r.lock.locker.names[i], Vote: b.vote}
		switch {
		case b.vote == Unknown && b.ended && b.Err != nil:
			node.Err = b.Err
		case b.vote == Unknown && b.ended && r.doubts(&b.Call):
			node.Err = errDoubtful
		case b.vote == Unknown:
			node.Err = errNoAnswer
		case b.vote != Pending && b.ended:
			node.TTL, node.Holder = b.Reply.TTL, b.Reply.Holder
			if len(r.request.Keys) > 1 {
				node.Key = b.Reply.Key
			}
		}
		nodes[i] = node
	}
	return nodes
}
