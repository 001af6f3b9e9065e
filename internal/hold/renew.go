package hold

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/limiter"
)

// renewal is a hold's plan for its own extension. The lock's mutex guards it.
type renewal struct {
	at       time.Duration // when the next one begins; 0: none
	count    int           // successful ones
	round    *round        // the one in flight
	deadline time.Duration // when it counts as failed
}

// plan sets the time of the next renewal after a round for ttl that began at start and was won. An extension by less
// than a renewal asks for gives less than one would, so it puts none off that is planned.
func (n *renewal) plan(t *Terms, start, ttl time.Duration) {
	planned := n.at
	n.at = 0
	if t.Renew && !n.enough(t) {
		n.at = start + t.TTL/renewShare
		if planned > 0 && ttl < t.TTL {
			n.at = min(n.at, planned)
		}
	}
}

// enough reports that the hold has been renewed as often as its terms allow.
func (n *renewal) enough(t *Terms) bool { return t.MaxRenewals > 0 && n.count >= t.MaxRenewals }

// renewShare of the ttl after a renewal the next one begins, which leaves time for two more attempts.
const renewShare = 3

// retryIn returns the pause after a failed renewal. The pause is short enough for several attempts before validity
// ends. It varies, so that the holds of one process do not retry all at once.
func (e *Env) retryIn(ttl time.Duration) time.Duration {
	base := min(max(ttl/30, 2*time.Millisecond), 500*time.Millisecond)
	return base/2 + e.Jitter(base)
}

// attended is a Hold as the schedule and its renewals know it.
type attended Hold

// bindLocked moves the bound, never back, after a round that was won, and schedules the next action: the renewal, or
// the end.
func (a *attended) bindLocked(r *round, until time.Duration) {
	a.span.extend(until)
	a.renewal.plan(a.terms, r.start, r.request.TTL)
	a.scheduleLocked()
}

// dueLocked returns the time of the hold's next action.
func (a *attended) dueLocked() time.Duration {
	if a.state.Over() {
		return a.span.until
	}
	at := a.span.until - a.terms.Grace
	switch {
	case a.renewal.round != nil:
		at = min(at, a.renewal.deadline)
	case a.renewal.at > 0:
		at = min(at, a.renewal.at)
	}
	return at
}

// scheduleLocked makes sure that attend is called for the hold's next action.
func (a *attended) scheduleLocked() { a.env.Schedule.Set(&a.attention, a.dueLocked(), a) }

// Fire implements [schedule.Target]: the hold is due. Fire ends it, renews it, or abandons a renewal that takes too
// long.
func (a *attended) Fire() {
	var after effects
	defer after.run()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.env.Now()
	switch {
	case a.state.Over():
		a.lapsedLocked(now, &after)
	case now >= a.span.until-a.terms.Grace:
		(*Hold)(a).overLocked(a.span.why(now), nil, &after)
		a.lapsedLocked(now, &after)
	case a.renewal.round != nil && now >= a.renewal.deadline:
		after.late = a.renewal.round // onDecided schedules the hold again
	case a.renewal.round == nil && a.renewal.at > 0 && now >= a.renewal.at:
		a.renewal.at = 0 // until the next one is planned
		a.scheduleLocked()
		after.renews = a
	default:
		a.scheduleLocked()
	}
}

// lapsedLocked releases a lapsed hold once its validity has ended. Until then the holder uses its grace to finish,
// and no other owner may have the key.
func (a *attended) lapsedLocked(now time.Duration, after *effects) {
	switch {
	case a.state.Phase != Grace: // it was called just before
	case now >= a.span.until:
		(*Hold)(a).releaseLocked(nil, after)
	default:
		a.scheduleLocked()
	}
}

// renew sends a renewal. It reports false if it sends none: none is due any more, or the Locker does not know whether
// its configuration is out of date, and has to try later.
func (a *attended) renew() bool {
	asOf, fresh := a.env.Current()
	var after effects
	defer after.run()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stillDueLocked() {
		return false
	}
	if !fresh {
		a.renewal.at = a.env.Now() + a.env.retryIn(a.terms.TTL)
		a.scheduleLocked()
		after.notRenewed = (*Hold)(a)
		return false
	}
	a.renewal.round = (*extended)(a).newRoundLocked(a.terms.TTL, asOf, a) // onDecided is told the result
	a.renewal.deadline = a.env.Now() + a.terms.Timeout
	a.scheduleLocked()
	a.renewal.round.issueLocked(&after)
	return true
}

// stillDueLocked reports that a renewal that had to wait behind those of other holds is to be sent. An extension
// meanwhile may have planned another one, so that the hold waited twice.
func (a *attended) stillDueLocked() bool {
	return !a.state.Over() && a.renewal.round == nil && !a.renewal.enough(a.terms)
}

// onDecided implements decisionObserver: a renewal has succeeded or failed. While validity lasts a failed one is tried
// again.
func (a *attended) onDecided(r *round) {
	defer a.env.Renewals.Leave()
	var after effects
	defer after.run()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewal.round = nil
	if r.verdict == Won {
		a.renewal.count++
	}
	if f := (*extended)(a).applyLocked(r, &after); f != nil && !a.state.Over() {
		a.renewal.at = a.env.Now() + a.env.retryIn(a.terms.TTL)
		a.scheduleLocked()
	}
}

// maxRenewing bounds the renewals of one Locker that are under way at the same time. A hold is renewed with two thirds
// of its ttl left, so waiting a little does no harm, while thousands of renewals at once would only make each other
// time out.
const maxRenewing = 1024

// Renewals are the renewals that are under way or about to be sent.
type Renewals = limiter.Limiter[*attended]

// NewRenewals returns an empty list.
func NewRenewals() *Renewals { return limiter.New(maxRenewing, (*attended).renew) }
