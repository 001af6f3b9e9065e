package redlock

import (
	"slices"
	"sync"
	"time"
)

// doneLead is how long before the end of validity a hold that nobody extended is declared over, so that a timer that
// fires a little late still closes Done in time.
const doneLead = time.Millisecond

// renewal is a hold's plan for its own extension. The lock's mutex guards it.
type renewal struct {
	at       time.Duration // when the next one begins; 0: none
	count    int           // successful ones
	round    *round        // the one in flight
	deadline time.Duration // when it counts as failed
}

// plan sets the time of the next renewal after a round that began at start and was won.
func (n *renewal) plan(s *spec, start time.Duration) {
	n.at = 0
	if s.renew && (s.maxRenewals == 0 || n.count < s.maxRenewals) {
		n.at = start + s.ttl/renewShare
	}
}

// retryIn is the pause after a renewal that failed: short enough for several attempts before validity ends, and
// spread out, so that the holds of one process do not come back all at once.
func (l *Locker) retryIn(ttl time.Duration) time.Duration {
	base := min(max(ttl/30, 2*time.Millisecond), 500*time.Millisecond)
	return base/2 + l.opts.Jitter(base)
}

// due is when the hold next needs attention.
func (k *Lock) due() time.Duration {
	at := k.until - doneLead
	switch {
	case k.renewal.round != nil:
		at = min(at, k.renewal.deadline)
	case k.renewal.at > 0:
		at = min(at, k.renewal.at)
	}
	return at
}

// setAlarm enters the hold in the agenda. The caller holds the mutex.
func (k *Lock) setAlarm() { k.locker.agenda.set(k, k.due()) }

// ring is called by the agenda when the hold is due: it ends it, renews it, or gives up on a renewal that takes too
// long.
func (k *Lock) ring() {
	k.mu.Lock()
	now := k.locker.clock.Now()
	switch {
	case k.over != nil:
		k.mu.Unlock()
	case now >= k.until-doneLead && !k.locker.opts.Sabotage.LateExtend:
		k.finishLocked(k.lapse(), nil)
	case k.renewal.round != nil && now >= k.renewal.deadline:
		late := k.renewal.round
		k.mu.Unlock()
		late.expire() // decided sets the alarm again
	case k.renewal.round == nil && k.renewal.at > 0 && now >= k.renewal.at:
		k.renewal.at = 0 // until the next one is planned
		k.setAlarm()
		k.mu.Unlock()
		k.locker.pace.enter(k)
	case now >= k.until-doneLead && k.renewal.round == nil: // LateExtend: nothing is left to wait for
		k.mu.Unlock()
	default:
		k.setAlarm()
		k.mu.Unlock()
	}
}

// renew sends a renewal, and reports false if there is no need: the hold is over, or is being renewed.
func (k *Lock) renew() bool {
	k.mu.Lock()
	if k.over != nil || k.renewal.round != nil {
		k.mu.Unlock()
		return false
	}
	k.renewal.round = k.newExtension(k.spec.ttl, k) // decided is told the result
	k.renewal.deadline = k.locker.clock.Now() + k.spec.timeout
	k.setAlarm()
	k.issue(k.renewal.round)
	return true
}

// decided implements decider: a renewal has succeeded or failed. While validity lasts a failed one is tried again.
func (k *Lock) decided(r *round) {
	defer k.locker.pace.leave()
	k.mu.Lock()
	k.renewal.round = nil
	if r.verdict == won {
		k.renewal.count++
	}
	k.mu.Unlock()
	if err := k.extended(r); err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		return
	}
	k.renewal.at = k.locker.clock.Now() + k.locker.retryIn(k.spec.ttl)
	k.setAlarm()
}

// maxRenewing bounds the renewals of one Locker that are under way at the same time. A hold is renewed with two thirds
// of its ttl left, so waiting a little does no harm, while thousands of renewals at once would only make each other
// time out.
const maxRenewing = 1024

// pace lets so many renewals go at a time, in the order in which they became due.
type pace struct {
	mu      sync.Mutex
	going   int
	waiting []*Lock
	next    int  // of waiting
	pumping bool // somebody is sending what may go
}

// enter sends the renewal of k now, or when it is its turn.
func (p *pace) enter(k *Lock) {
	p.mu.Lock()
	p.waiting = append(p.waiting, k)
	p.pump()
}

// leave counts a renewal that has ended.
func (p *pace) leave() {
	p.mu.Lock()
	p.going--
	p.pump()
}

// pump sends what may go. The caller holds the mutex, which pump gives up. A renewal may end before it has been sent,
// where all masters are down; its leave then finds somebody pumping, and comes back at once.
func (p *pace) pump() {
	defer p.mu.Unlock()
	if p.pumping {
		return
	}
	p.pumping = true
	for p.next < len(p.waiting) && p.going < maxRenewing {
		k := p.waiting[p.next]
		p.waiting[p.next] = nil
		p.next++
		p.going++
		p.mu.Unlock()
		sent := k.renew()
		p.mu.Lock()
		if !sent {
			p.going--
		}
	}
	if p.next > len(p.waiting)/2 {
		p.waiting = slices.Delete(p.waiting, 0, p.next)
		p.next = 0
	}
	p.pumping = false
}
