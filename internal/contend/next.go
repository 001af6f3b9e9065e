// Package contend has the rules for goroutines that wait for locks.
//
// [Progress] decides when a waiter asks the masters again, and when it gives up. Its functions are pure: the caller
// passes the time, the facts and the source of chance. They read no clock, take no mutex and wait for nothing.
// [Crowd.Wait] is the loop around them, and [Failure] is why it, or one of its attempts, got no lock.
//
// [Crowd] has the common part of the waiters of one process. They stand in the masters' queues under one name, leave
// these queues, and let other processes go first.
package contend

import (
	"math"
	"time"

	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

// Policy has the options of one acquisition.
type Policy struct {
	Every       time.Duration // from one attempt to the next; 0: backoff
	MaxAttempts int           // 0: no limit
	MaxOutage   time.Duration // 0: no limit
	MendTime    time.Duration // for how long the wait goes on while masters complain; 0: for ever
}

// Progress is the state of one wait. Only its own goroutine uses it.
type Progress struct {
	Since        time.Duration // when the wait began
	Attempts     int           // as MaxAttempts counts them
	Claims       bool          // it lets no new readers in, so its claim has to be refreshed
	Unreached    bool          // its latest attempt, made in turn, reached no quorum
	ComplainedOf time.Duration // since when its attempts have met complaints of masters; 0: the latest has not

	held   bool          // the latest attempt found the lock held
	splits int           // attempts in a row that were split
	due    time.Duration // when the next attempt is due that counts; 0: when woken
	soon   time.Duration // when it would be due if everything were by default
	// when its claim, or its position in the masters' queues, wants refreshing; 0: an attempt is due before
	refresh time.Duration
}

// Refusal is what counts of an attempt that did not get the lock.
type Refusal struct {
	Held     bool // another owner has the key, others contend for it, or others of this process are first in the queue
	Mendable bool // masters complain of something that somebody may mend
	Split    bool // contenders shared the votes, so nobody has the lock
	Granted  int  // votes of a split round
	Masters  int
	Free     time.Duration // in how long a quorum of the keys in the way will have expired; 0: unknown
	Kept     time.Duration // the same where nobody holds these keys any more
}

// After is what [Progress.Plan] goes by once an attempt has failed, or once others were first.
type After struct {
	Refusal
	Now        time.Duration
	Took       time.Duration // since the latest attempt began
	Turn       bool          // the waiter is first in its queue
	Counts     bool          // this was one of MaxAttempts
	Subscribed bool          // a quorum of masters can notify the waiter
}

// Plan decides when the next attempt is due. An attempt that does not count, because only a release that was missed
// would have let it succeed, puts nothing off.
func (p *Progress) Plan(o *Policy, a *After, jitter Jitter) {
	p.held = a.Held
	if p.splits++; !a.Turn || !a.Split {
		p.splits = 0
	}
	n := p.Attempts
	if p.inStep(o) {
		n = p.splits - splitsInStep + 1
	}
	pause := a.backoff(n, jitter)
	if p.ComplainedOf > 0 {
		least := min(max(FirstPause, (a.Now-p.ComplainedOf)/complainingShare), MaxComplainingPause)
		pause = max(pause, least/2+jitter(least/2))
	}
	p.soon = a.Now + pause
	switch {
	case !a.Turn && o.MaxAttempts == 0:
		p.due = 0
	case o.Every == 0 && (a.Counts || o.MaxAttempts == 0):
		p.due = p.soon
	case a.Counts:
		p.due = later(a.Now, o.Every)
	}
	if a.Turn && o.Every > 0 && a.Kept > 0 { // a release was known of before the key is free
		p.due = min(p.due, a.Now+a.Kept+jitter(FirstPause))
	}
	if by := p.MendBy(o, p.ComplainedOf); a.Mendable && by > 0 && p.due > 0 { // once more then, however seldom it asks
		p.due, p.soon = min(p.due, by), min(p.soon, by)
	}
	p.refresh = 0
	if after := p.refreshAfter(a.Subscribed); a.Turn && after > 0 && p.due-a.Now > after {
		p.refresh = a.Now + after + jitter(after/8)
	}
}

// inStep reports that the same contenders seem to share the votes again and again. Each gives its votes back at the
// same time, so each is notified at the same time. If all came back then, they would share the votes once more.
func (p *Progress) inStep(o *Policy) bool { return o.Every == 0 && p.splits >= splitsInStep }

// MendBy is when the wait ends if masters have complained since began and do so until then; 0: never.
func (p *Progress) MendBy(o *Policy, began time.Duration) time.Duration {
	if o.MendTime == 0 {
		return 0
	}
	return later(max(began, p.Since), o.MendTime)
}

// later returns t + d, or the end of time: both options may be as long as a duration can be.
func later(t, d time.Duration) time.Duration { return t + min(d, math.MaxInt64-t) }

// refreshAfter is how soon after an attempt another one is due, however seldom the waiter asks, so that the masters
// know that it still waits; 0: never.
func (p *Progress) refreshAfter(subscribed bool) time.Duration {
	switch {
	case p.Claims:
		return claimAfter
	case subscribed:
		return refreshAfter
	default:
		return 0
	}
}

// View has the facts for one decision.
type View struct {
	waitqueue.Status
	Now        time.Duration
	OutageLeft time.Duration // how much of MaxOutage is left
}

// Action is the next step of a waiter.
type Action uint8

// The actions.
const (
	Sleep    Action = iota // until it is woken, or until a time
	Try                    // to get the lock from the masters
	TakeOver               // the lock that another goroutine passes to it
	GiveUp                 // because the masters were out of reach for MaxOutage
)

// Step is one decision.
type Step struct {
	Do       Action
	Counts   bool          // the try is one of MaxAttempts
	Enters   bool          // the try enters a lock again, out of turn
	StepBack bool          // another kind of waiter may go first: this one's latest attempt reached no quorum
	Until    time.Duration // when the sleep ends; 0: when the waiter is woken
}

// Next decides the next step. The first rule that fits applies: a lock that is passed to it; a reason to look at once;
// an attempt that is due; the end of an outage.
func (p *Progress) Next(o *Policy, v *View) Step {
	switch {
	case v.Taken:
		return Step{Do: TakeOver}
	case !v.Turn && v.Why&waitqueue.Enters != 0:
		return Step{Do: Try, Enters: true}
	case !v.Turn:
	case v.Why&waitqueue.First != 0, v.Why&waitqueue.Free != 0 && !p.inStep(o):
		return Step{Do: Try, Counts: true}
	case v.Why&(waitqueue.Missed|waitqueue.Enters) != 0:
		return Step{Do: Try}
	}
	until := p.due
	if v.Turn && v.Company && until > 0 {
		until = min(until, p.soon) // those behind it must not suffer from its Every
	}
	if v.Turn && p.refresh > 0 {
		until = min(until, p.refresh)
	}
	switch {
	case until > 0 && v.Now >= until:
		return Step{Do: Try, Counts: v.Now >= p.due, StepBack: p.Unreached}
	case o.MaxOutage == 0:
	case v.OutageLeft <= 0 && v.Turn && p.held:
		// its own last round reached a quorum, so the outage was seen by another waiter
		return Step{Do: Try}
	case v.OutageLeft <= 0:
		return Step{Do: GiveUp}
	case until == 0 || v.OutageLeft < until-v.Now:
		until = v.Now + v.OutageLeft
	}
	return Step{Do: Sleep, Until: until}
}

const (
	// FirstPause is the least jittered backoff between two rounds of one waiter.
	FirstPause = 2 * time.Millisecond
	// MaxPause bounds it from above.
	MaxPause = 64 * time.Millisecond
	// splitRounds bounds the pause after a split vote, as a multiple of the last round's duration. A few contenders
	// can then come one after the other. Without the bound, slow rounds would lead to pauses of many seconds.
	splitRounds = 4
	// splitsInStep is how many rounds in a row may be split before a notification no longer ends the pause.
	splitsInStep = 3
	// NotifiedPause takes the place of the backoff while a quorum of masters can notify the waiter: its turn then comes
	// by itself, and a backoff is for notifications that got lost.
	NotifiedPause = 200 * time.Millisecond
	// refreshAfter is the longest time between two attempts of a waiter that masters notify. Masters keep its position
	// for a minute, so one of two attempts may be lost. It also bounds how long a release goes unnoticed if its
	// notification was lost, or went to a dead waiter.
	refreshAfter = 24 * time.Second
	// claimAfter is the same for a waiter that lets no new readers in: its claim lasts for single.WriterClaim, so one
	// of two may be lost.
	claimAfter = time.Second
	// complainingShare makes the pauses of a wait longer, the longer masters complain.
	complainingShare = 8
	// MaxComplainingPause bounds these pauses.
	MaxComplainingPause = 5 * time.Second
)

// Jitter draws a random duration from 0 up to most. Simulated schedules depend on the order of draws.
type Jitter func(most time.Duration) time.Duration

// backoff is how long to wait after the n-th attempt: until a quorum can have become free by itself, or a jittered
// backoff, whichever is shorter; never nothing.
func (a *After) backoff(n int, jitter Jitter) time.Duration {
	backoff := min(FirstPause<<min(n-1, 10), MaxPause)
	if a.Subscribed {
		backoff = NotifiedPause
	}
	switch {
	case a.Split:
		return a.Spread(n, a.Took, jitter)
	case a.Free > 0 && a.Free < backoff/2:
		return a.Free + jitter(FirstPause) // every waiter knows this moment
	default:
		return backoff/2 + jitter(backoff/2)
	}
}

// Spread is the pause after the n-th round if it was split; took is how long the round took. Contenders with more votes
// come back sooner, so that of many one soon has no competition. What sets them apart has to be as long as a round
// takes on this network, or they meet again.
func (r *Refusal) Spread(n int, took time.Duration, jitter Jitter) time.Duration {
	span := time.Duration(r.Masters-r.Granted) * max(FirstPause, took) / time.Duration(r.Masters)
	return max(1, jitter(min(max(1, span)<<min(n-1, 5), max(MaxPause, splitRounds*took))))
}

// Pause is the pause of a try after its n-th round, with so much of its time left. The more rounds it has lost, the
// longer it pauses. If a master is stopped and the network is slow, somebody otherwise always comes back while others
// still ask, and spoils their round.
func (r *Refusal) Pause(n int, took, left time.Duration, jitter Jitter) time.Duration {
	apart := min(2*time.Duration(n-1)*max(FirstPause, took), left/4)
	return min(apart+r.Spread(n, took, jitter), left/2)
}
