package contend

import (
	"context"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
)

// A try takes the lock now or says why not. A round is split if the masters granted the key to several callers and no
// caller has a quorum. A split round is no refusal: the lock is free. So a try repeats the round after a random pause.
// It ends with the lock, with a holder that a quorum names, or with the request timeout.
//
// A new Locker has no connections yet. To make one may take longer than a request. So a try also repeats a round that
// had no quorum because of this.

// maxProposals bounds the rounds without a pause between them that a counter ahead of the published token may cost.
const maxProposals = 3

// Once makes a single attempt, and says how many rounds it took.
func (c *Crowd) Once(ctx context.Context, a *Acquisition, locks Locks) (h *hold.Hold, rounds int, f *Failure) {
	h, f = c.try(ctx, a, func() (*hold.Hold, *Failure) {
		rounds++
		return c.attempt(ctx, a, locks, nil)
	})
	return h, rounds, f
}

// try calls round until a round is won or another owner has the lock. Each round is a separate acquisition: validity
// counts from the start of the last round, and a master releases a lost round before it sees the next one. Rounds begin
// within the request timeout. Then a vote that is still split is contended.
func (c *Crowd) try(ctx context.Context, a *Acquisition, round func() (*hold.Hold, *Failure)) (*hold.Hold, *Failure) {
	end := c.env.Now() + a.Timeout
	var last *Failure // of the latest round that was refused
	for n := 1; ; n++ {
		began, counter, strange := c.env.Now(), a.contest.Counter(), unmet(c.env)
		a.contest.Begin(n, began)
		h, f := round()
		now := c.env.Now()
		took := now - began
		if strange != 0 && took > a.Timeout/2 { // most of it was for connections
			took, end = FirstPause, now+a.Timeout
		}
		if f.metLate(c.env, strange) && c.Sleep(ctx, c.closing, nil, max(FirstPause, 2*c.Slowest())) == nil {
			continue // this round's keys are released
		}
		if f.is(hold.Cancelled) && last != nil {
			return nil, gaveUp(f, last)
		}
		if !f.is(hold.Refusal) || a.contest.Held(c.env, took) {
			return h, f
		}
		if a.contest.Counter() != counter && n < maxProposals {
			continue // the masters' counters were in its way, and are known now
		}
		left := end - now
		over := left <= max(FirstPause, took)
		pause := max(1, min(left, took)) // for late votes, which may name a holder
		if !over {
			refusal := f.Refusal(c.env.Sets)
			pause = refusal.Pause(n, took, left, c.env.Jitter)
		}
		stop := c.Sleep(ctx, c.closing, nil, pause)
		held := a.contest.Held(c.env, took)
		f.Contended = !held && !inTheWay(c.env, a, f)
		switch {
		case held, over:
			return nil, f
		case stop != nil:
			return nil, gaveUp(stop, f)
		}
		last = f
	}
}

// gaveUp is the failure of a try that end has ended after a lost round.
func gaveUp(end, last *Failure) *Failure {
	f := &Failure{Kind: GaveUp, End: end, Last: last}
	f.Result = last.Result
	return f
}

// metLate reports that a round was lost because these masters were met in it, and that the next one may have a quorum.
func (f *Failure) metLate(env *hold.Env, unmet uint64) bool {
	return unmet != 0 && f.is(hold.Unreached) && f.late(&env.Sets[f.Set]) && hasMet(env, unmet)
}

// unmet returns the masters that have never answered, and to which a connection may still be made. It returns none if
// the others are a quorum.
func unmet(env *hold.Env) (masters uint64) {
	for i, l := range env.Lanes {
		if lane.Unmet(l) {
			masters |= 1 << i
		}
	}
	if masters == 0 || env.Majority(hold.EveryMaster&^masters) {
		return 0
	}
	return masters
}

// hasMet reports that a quorum may answer the next round: of the masters that were unmet, enough have answered or may
// still do so.
func hasMet(env *hold.Env, unmet uint64) bool {
	hope := hold.EveryMaster &^ unmet
	for i, l := range env.Lanes {
		if l.RTT() != 0 || lane.Unmet(l) {
			hope |= 1 << i
		}
	}
	return env.Majority(hope)
}

// inTheWay reports that a try that ended with f met owners that stay from round to round and, together with silent
// masters, leave no quorum.
func inTheWay(env *hold.Env, a *Acquisition, f *Failure) bool {
	set, absent := &env.Sets[f.Set], uint64(0)
	for i := range f.Result.Answers {
		if f.Result.Answers[i].Vote == hold.Unknown {
			absent |= 1 << i
		}
	}
	return a.contest.InTheWay(env, func(lasting uint64) bool {
		n := set.Of(lasting)
		return n > 0 && n+set.Of(absent) > set.Spare()
	})
}
