package contend

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/generation"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// This file knows whether the masters can be reached, and whether the configuration of masters is current.

// Outage is the time since which no round has reached a quorum. The zero value is no outage.
type Outage struct{ began atomic.Int64 }

// Since returns the start of the first round that reached no quorum, since the last that did; 0 if there is no outage.
func (o *Outage) Since() time.Duration { return time.Duration(o.began.Load()) }

// left returns the rest of an outage for a wait that began at since, if the outage may last for d; it returns d if
// there is no outage.
func (o *Outage) left(d, since, now time.Duration) time.Duration {
	began := o.Since()
	if began == 0 {
		return d
	}
	return d - (now - max(began, since))
}

// reached records how a round that began at start ended. MaxOutage needs this, and so do waits in which masters
// complain. a is the acquisition, or nil for another operation.
func (c *Crowd) reached(a *Acquisition, f *Failure, start time.Duration) {
	switch {
	case f == nil, f.is(hold.Refusal), f.is(hold.Late): // masters enough have answered
		if c.Outage.Since() != 0 {
			c.Outage.began.Store(0)
		}
		if a != nil {
			c.complaining.end(a)
		}
	case f.is(hold.Unreached) && f.Lasts < single.Mendable: // an error that an operator has to mend is no outage
		c.Outage.began.CompareAndSwap(0, int64(max(1, start)))
	}
}

// newGenerations makes the knowledge whether the configuration is current.
func newGenerations(c *Crowd, own uint64, timeout time.Duration) *generation.Currency {
	env := c.env
	return generation.New(generation.Config{
		Own: own, Lanes: env.Lanes, Timeout: timeout, Now: env.Now, Prepare: env.Prepare, Majority: env.Majority,
		Decides: func(answered, failed uint64) bool {
			return env.Judge(single.Acquire, hold.Votes{Granted: answered, Unknown: failed}) != hold.Open
		},
		Asks:  env.Registry.Begin,
		Ended: func(call *lane.Call) { c.announced.note(len(env.Lanes), call, timeout) },
		Done:  env.Registry.Done,
	})
}

// Current implements [hold.Host].
func (c *Crowd) Current() (asOf time.Duration, fresh bool) {
	known, _ := c.Generations.Ask()
	return known.AsOf, known.Fresh
}

// AwaitCurrent waits until the Locker knows that it may take and extend locks. It waits no longer than for one
// request, and no longer than until closing is closed; closing may be nil. A round that relies on the answer counts
// from asOf. If sent is zero because nothing was sent before, AwaitCurrent sets it to the time of the first request.
func (c *Crowd) AwaitCurrent(
	ctx context.Context, closing <-chan struct{}, timeout time.Duration, sent *time.Time,
) (asOf time.Duration, f *Failure) {
	known, asking := c.Generations.Ask()
	if known.Newer != nil {
		return 0, &Failure{Kind: Outdated}
	}
	if known.Fresh {
		return known.AsOf, nil
	}
	if sent.IsZero() {
		*sent = asking.Sent
	}
	if end := c.Sleep(ctx, closing, asking.Decided, timeout); end != nil {
		return 0, &Failure{Kind: Asking, End: end}
	}
	switch known = c.Generations.State(); {
	case known.Newer != nil:
		return 0, &Failure{Kind: Outdated}
	case known.Fresh:
		return known.AsOf, nil
	}
	f = c.NotAnnounced(asking, *sent)
	c.reached(nil, f, asking.Start)
	return 0, f
}

// NotAnnounced names a set without a quorum of answers. If every set has a quorum, the answers came too late to hold.
// The order is: a set with too many masters that fail permanently, in replies to requests sent since then; a set that
// can't get a quorum any more; any other.
func (c *Crowd) NotAnnounced(a *generation.Announcement, since time.Time) *Failure {
	answers := a.Answers()
	r := announcement(len(c.env.Lanes), &answers)
	f := &Failure{Failure: hold.Failure{Fault: hold.Unreached, Op: r.Op, Result: r}}
	if c.announced.blame(f, c.env.Sets, since, a.Sent) {
		return f
	}
	lost := func(set *hold.Set) bool { return set.Of(answers.Failed) > set.Spare() }
	short := func(set *hold.Set) bool { return set.Of(answers.Answered) < set.Quorum }
	for _, why := range [...]func(set *hold.Set) bool{lost, short} {
		for i := range c.env.Sets {
			if why(&c.env.Sets[i]) {
				f.Set = i
				return f
			}
		}
	}
	f.Fault = hold.Late
	return f
}

// announcement describes the answers as those of a round.
func announcement(masters int, answers *generation.Answers) *hold.Result {
	r := &hold.Result{Answers: make([]hold.Answer, masters)}
	r.Op, r.Keys = single.Announce, []string{single.GenerationKey}
	r.Votes = hold.Votes{Granted: answers.Answered, Unknown: answers.Failed}
	for i := range r.Answers {
		switch bit, answer := uint64(1)<<i, &r.Answers[i]; {
		case answers.Answered&bit != 0:
			answer.Vote = hold.Granted
		case answers.Failed&bit != 0:
			answer.Vote, answer.Ended, answer.Err = hold.Unknown, true, answers.Errs[i]
		case !answers.Settled:
			answer.Vote = hold.Unknown
		}
	}
	return r
}
