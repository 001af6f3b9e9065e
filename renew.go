package redlock

import (
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
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
func (n *renewal) plan(s *spec, start, ttl time.Duration) {
	planned := n.at
	n.at = 0
	if s.renew && (s.maxRenewals == 0 || n.count < s.maxRenewals) {
		n.at = start + s.ttl/renewShare
		if planned > 0 && ttl < s.ttl {
			n.at = min(n.at, planned)
		}
	}
}

// retryIn returns the pause after a failed renewal. The pause is short enough for several attempts before validity
// ends. It varies, so that the holds of one process do not retry all at once.
func (l *Locker) retryIn(ttl time.Duration) time.Duration {
	base := min(max(ttl/30, 2*time.Millisecond), 500*time.Millisecond)
	return base/2 + l.opts.Jitter(base)
}

// dueLocked returns the time of the hold's next action.
func (k *Lock) dueLocked() time.Duration {
	if k.state.Over() {
		return k.until
	}
	at := k.until - k.spec.grace
	switch {
	case k.renewal.round != nil:
		at = min(at, k.renewal.deadline)
	case k.renewal.at > 0:
		at = min(at, k.renewal.at)
	}
	return at
}

// scheduleLocked makes sure that attend is called for the hold's next action.
func (k *Lock) scheduleLocked() { k.locker.schedule.Set(&k.attention, k.dueLocked(), (*attended)(k)) }

// attended is a Lock as the schedule knows it.
type attended Lock

// Fire implements [schedule.Target].
func (k *attended) Fire() { (*Lock)(k).attend() }

// attend is called when the hold is due. It ends the hold, renews it, or abandons a renewal that takes too long.
func (k *Lock) attend() {
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.locker.clock.Now()
	switch {
	case k.state.Over():
		k.lapsedLocked(now, &after)
	case now >= k.until-k.spec.grace:
		k.lapseLocked(&after)
		k.lapsedLocked(now, &after)
	case k.renewal.round != nil && now >= k.renewal.deadline:
		after.late = k.renewal.round // onDecided schedules the hold again
	case k.renewal.round == nil && k.renewal.at > 0 && now >= k.renewal.at:
		k.renewal.at = 0 // until the next one is planned
		k.scheduleLocked()
		after.renews = k
	default:
		k.scheduleLocked()
	}
}

// lapsedLocked releases a lapsed hold once its validity has ended. Until then the holder uses its grace to finish,
// and no other owner may have the key.
func (k *Lock) lapsedLocked(now time.Duration, after *effects) {
	switch {
	case k.state.Phase != hold.Grace: // it was called just before
	case now >= k.until:
		k.releaseLocked(nil, after)
	default:
		k.scheduleLocked()
	}
}

// renew sends a renewal. It reports false if it sends none: the hold is over, or a renewal is under way, or the
// Locker does not know whether its configuration is out of date, and has to try later.
func (k *Lock) renew() bool {
	known, _ := k.locker.current.Ask()
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.Over() || k.renewal.round != nil {
		return false
	}
	if !known.Fresh {
		k.renewal.at = k.locker.clock.Now() + k.locker.retryIn(k.spec.ttl)
		k.scheduleLocked()
		k.locker.observeOutdated(k.spec)
		return false
	}
	k.renewal.round = k.newExtensionLocked(k.spec.ttl, known.AsOf, k) // onDecided is told the result
	k.renewal.deadline = k.locker.clock.Now() + k.spec.timeout
	k.scheduleLocked()
	k.issueLocked(k.renewal.round, &after)
	return true
}

// onDecided implements decisionObserver: a renewal has succeeded or failed. While validity lasts a failed one is tried
// again.
func (k *Lock) onDecided(r *round) {
	defer k.locker.renewals.Leave()
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewal.round = nil
	if r.verdict == won {
		k.renewal.count++
	}
	if err := k.extendedLocked(r, &after); err != nil && !k.state.Over() {
		k.renewal.at = k.locker.clock.Now() + k.locker.retryIn(k.spec.ttl)
		k.scheduleLocked()
	}
}

// maxRenewing bounds the renewals of one Locker that are under way at the same time. A hold is renewed with two thirds
// of its ttl left, so waiting a little does no harm, while thousands of renewals at once would only make each other
// time out.
const maxRenewing = 1024
