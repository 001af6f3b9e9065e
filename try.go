package redlock

import (
	"context"
	"errors"
	"net"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// A try takes the lock now or says why not. A round is split if the masters granted the key to several callers and no
// caller has a quorum. A split round is no refusal: the lock is free. So a try repeats the round after a random pause.
// It ends with the lock, with a holder that a quorum names, or with the request timeout.
//
// A new Locker has no connections yet. To make one may take longer than a request. So a try also repeats a round that
// had no quorum because of this.

// maxProposals bounds the rounds without a pause between them that a counter ahead of the published token may cost.
const maxProposals = 3

// once makes a single attempt, and says how many rounds it took.
func (l *Locker) once(ctx context.Context, s *spec) (k *Lock, rounds int, err error) {
	k, f := l.try(ctx, s, func() (*Lock, *failure) {
		rounds++
		return l.attempt(ctx, s, nil)
	})
	return k, rounds, f.error()
}

// try calls round until a round is won or another owner has the lock. Each round is a separate acquisition: validity
// counts from the start of the last round, and a master releases a lost round before it sees the next one. Rounds begin
// within the request timeout. Then a vote that is still split becomes [ErrContended].
func (l *Locker) try(ctx context.Context, s *spec, round func() (*Lock, *failure)) (*Lock, *failure) {
	end := l.clock.Now() + s.Timeout
	for n := 1; ; n++ {
		began, counter, strange := l.clock.Now(), s.contest.Counter(), unmet(l.env.Lanes, l.sets)
		s.contest.Begin(n)
		k, f := round()
		now := l.clock.Now()
		took := now - began
		if strange != 0 && took > s.Timeout/2 { // most of it was for connections
			took, end = contend.FirstPause, now+s.Timeout
		}
		if strange != 0 && ctx.Err() == nil && f.is(failUnreached) && f.q.late() &&
			hasMet(l.env.Lanes, l.sets, strange) {
			pause := max(contend.FirstPause, 2*l.crowd.Slowest()) // until this round's keys are released
			if l.sleep(ctx, l.closing, nil, pause) != nil {
				return k, f
			}
			continue
		}
		if !f.is(failHeld) || s.contest.Held(&l.rules) {
			return k, f
		}
		if s.contest.Counter() != counter && n < maxProposals {
			continue // the masters' counters were in its way, and are known now
		}
		left := end - now
		if left <= max(contend.FirstPause, took) {
			f.q.Reason = l.contended(s, f.q)
			return nil, f
		}
		refusal := f.refusal()
		pause := refusal.Spread(n, took, l.opts.Jitter)
		if ended := l.sleep(ctx, l.closing, nil, min(pause, left/2)); ended != nil {
			f.q.Reason = l.contended(s, f.q)
			return nil, &failure{err: &waitError{key: l.shown(s.Keys[0]), ended: ended, last: f.err}, q: f.q}
		}
		if s.contest.Held(&l.rules) { // late votes may have completed a quorum
			return nil, f
		}
	}
}

// unmet returns the masters that have never answered, and to which a connection may still be made. It returns none if
// the others are a quorum.
func unmet(lanes []*lane.Lane, sets electorates) (masters uint64) {
	for i, l := range lanes {
		if lane.Unmet(l) {
			masters |= 1 << i
		}
	}
	if masters == 0 || sets.majority(hold.EveryMaster&^masters) {
		return 0
	}
	return masters
}

// hasMet reports that a quorum may answer the next round: of the masters that were unmet, enough have answered or may
// still do so.
func hasMet(lanes []*lane.Lane, sets electorates, unmet uint64) bool {
	hope := hold.EveryMaster &^ unmet
	for i, l := range lanes {
		if l.RTT() != 0 || lane.Unmet(l) {
			hope |= 1 << i
		}
	}
	return sets.majority(hope)
}

// late reports that masters enough for a quorum have granted or not answered. The others have answered with an error.
func (e *QuorumError) late() bool {
	late := 0
	for _, node := range e.Nodes {
		timeout, is := errors.AsType[net.Error](node.Err)
		silent := errors.Is(node.Err, errNoAnswer) || is && timeout.Timeout() || errors.Is(node.Err, single.ErrLate)
		if silent || node.Err == nil && node.Vote != Refused {
			late++
		}
	}
	return late >= e.Quorum
}

// contended returns the reason for a try that ended with q. Owners that stay from round to round and silent masters can
// leave no quorum.
func (l *Locker) contended(s *spec, q *QuorumError) error {
	absent := 0
	for i := range q.Nodes {
		if q.Nodes[i].Vote == Unknown {
			absent++
		}
	}
	outvoted := func(lasting uint64) bool {
		for i := range l.sets {
			if n := l.sets[i].of(lasting); l.sets[i].name == q.Set && n > 0 && n+absent > l.sets[i].spare() {
				return true
			}
		}
		return false
	}
	if s.contest.InTheWay(&l.rules, outvoted) {
		return ErrHeld
	}
	return ErrContended
}
