package hold

import "time"

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
	if t.Renew && (t.MaxRenewals == 0 || n.count < t.MaxRenewals) {
		n.at = start + t.TTL/renewShare
		if planned > 0 && ttl < t.TTL {
			n.at = min(n.at, planned)
		}
	}
}

// renewShare of the ttl after a renewal the next one begins, which leaves time for two more attempts.
const renewShare = 3

// retryIn returns the pause after a failed renewal. The pause is short enough for several attempts before validity
// ends. It varies, so that the holds of one process do not retry all at once.
func (e *Env) retryIn(ttl time.Duration) time.Duration {
	base := min(max(ttl/30, 2*time.Millisecond), 500*time.Millisecond)
	return base/2 + e.Jitter(base)
}

// dueLocked returns the time of the hold's next action.
func (h *Hold) dueLocked() time.Duration {
	if h.state.Over() {
		return h.until
	}
	at := h.until - h.terms.Grace
	switch {
	case h.renewal.round != nil:
		at = min(at, h.renewal.deadline)
	case h.renewal.at > 0:
		at = min(at, h.renewal.at)
	}
	return at
}

// scheduleLocked makes sure that attend is called for the hold's next action.
func (h *Hold) scheduleLocked() { h.env.Schedule.Set(&h.attention, h.dueLocked(), (*attended)(h)) }

// attended is a Hold as the schedule and its renewals know it.
type attended Hold

// Fire implements [schedule.Target].
func (a *attended) Fire() { (*Hold)(a).attend() }

// attend is called when the hold is due. It ends the hold, renews it, or abandons a renewal that takes too long.
func (h *Hold) attend() {
	var after effects
	defer after.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.env.Now()
	switch {
	case h.state.Over():
		h.lapsedLocked(now, &after)
	case now >= h.until-h.terms.Grace:
		h.lapseLocked(&after)
		h.lapsedLocked(now, &after)
	case h.renewal.round != nil && now >= h.renewal.deadline:
		after.late = h.renewal.round // onDecided schedules the hold again
	case h.renewal.round == nil && h.renewal.at > 0 && now >= h.renewal.at:
		h.renewal.at = 0 // until the next one is planned
		h.scheduleLocked()
		after.renews = h
	default:
		h.scheduleLocked()
	}
}

// lapsedLocked releases a lapsed hold once its validity has ended. Until then the holder uses its grace to finish,
// and no other owner may have the key.
func (h *Hold) lapsedLocked(now time.Duration, after *effects) {
	switch {
	case h.state.Phase != Grace: // it was called just before
	case now >= h.until:
		h.releaseLocked(nil, after)
	default:
		h.scheduleLocked()
	}
}

// Renew sends a renewal. It reports false if it sends none: the hold is over, or a renewal is under way, or the
// Locker does not know whether its configuration is out of date, and has to try later.
func (h *Hold) Renew() bool {
	asOf, fresh := h.env.Current()
	var after effects
	defer after.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.Over() || h.renewal.round != nil {
		return false
	}
	if !fresh {
		h.renewal.at = h.env.Now() + h.env.retryIn(h.terms.TTL)
		h.scheduleLocked()
		after.notRenewed = h
		return false
	}
	h.renewal.round = h.newExtensionLocked(h.terms.TTL, asOf, (*attended)(h)) // onDecided is told the result
	h.renewal.deadline = h.env.Now() + h.terms.Timeout
	h.scheduleLocked()
	h.issueLocked(h.renewal.round, &after)
	return true
}

// onDecided implements decisionObserver: a renewal has succeeded or failed. While validity lasts a failed one is tried
// again.
func (a *attended) onDecided(r *round) {
	h := (*Hold)(a)
	defer h.env.Renewals.Leave()
	var after effects
	defer after.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewal.round = nil
	if r.verdict == Won {
		h.renewal.count++
	}
	if f := h.extendedLocked(r, &after); f != nil && !h.state.Over() {
		h.renewal.at = h.env.Now() + h.env.retryIn(h.terms.TTL)
		h.scheduleLocked()
	}
}

// MaxRenewing bounds the renewals of one Locker that are under way at the same time. A hold is renewed with two thirds
// of its ttl left, so waiting a little does no harm, while thousands of renewals at once would only make each other
// time out.
const MaxRenewing = 1024
