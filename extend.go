package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// This file serialises the extensions of one hold. On each master, an operation of a hold waits until the earlier one
// has ended (see order.go). So an extension that began while another was under way would spend its request timeout in
// waiting. The serialisation prevents these failures:
//
//   - Masters take more than half the request timeout, and two callers extend at the same time, or one extends while
//     the lock is being renewed. The first succeeds; the second gets the error that too few masters answered in time.
//   - Eight callers extend at the same time, and the last waits for seven round trips.
//   - A majority has lost the key. The first extension sets it again on some masters and is not decided yet; the second
//     finds it there, and wins, although the lock was free in between.
//
// So only one extension is under way at a time. Callers that arrive while it runs share the next extension. It begins
// after all of these calls, and has the longest ttl among theirs, since no extension ever shortens. A renewal does
// not wait: it is tried again.

// extending is the state of a hold's extensions, without renewals. The lock's mutex guards it.
type extending struct {
	latest  *round
	begun   int           // how many there were
	wanted  time.Duration // by those that wait for the next one
	waiting int           // how many those are
}

// Extend sets the end of the lock to ttl from now, and never shortens it. The votes of a quorum that never lost the
// key decide, so the lock was never free in between. Masters that have lost the key get it back after that. Extend
// waits for another extension or renewal that is under way. Each takes at most a request timeout.
//
// On error the lock keeps its old end and nothing is released. Only with [ErrNotHeld] is the lock over. After
// [ErrNoQuorum] try again, unless it is [ErrMisconfigured]. ctx bounds the wait, not the effect.
func (k *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if k.isNone() {
		return ErrNotHeld
	}
	if ctx == nil {
		return invalid("nil context")
	}
	ttl, _, err := k.locker.checkTTL(ttl)
	if err != nil {
		return err
	}
	asked := k.extensions()
	for {
		asOf, err := k.current(ctx)
		if err != nil {
			return err
		}
		w := k.locker.newRoundWait()
		r, serves, err := k.extend(ttl, asked, asOf, w)
		if err != nil {
			return err
		}
		err = w.wait(ctx, k.spec.timeout, r)
		if !serves {
			k.waited()
		}
		if err != nil {
			return fmt.Errorf("redlock: extend %q: %w", k.Key(), err)
		}
		k.locker.recycle(w)
		// This also holds for an extension that this call only waited for: the goroutine that began it may not have
		// applied it yet.
		if over, err := k.extended(r); serves || over {
			return err
		}
	}
}

// current waits until the Locker knows that its configuration allows an extension. It does not check whether the
// masters still have the key. A lock that is over returns its own error: the error must not suggest another try.
// While the Locker is being closed, held locks can still be extended.
func (k *Lock) current(ctx context.Context) (asOf time.Duration, err error) {
	if err := k.Err(); err != nil {
		return 0, err
	}
	var sent time.Time
	asOf, f := k.locker.awaitCurrent(ctx, k.spec.timeout, &sent, nil)
	if f != nil {
		return 0, cmp.Or(k.Err(), f.err)
	}
	return asOf, nil
}

// extensions counts the extensions that have begun.
func (k *Lock) extensions() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.extending.begun
}

// waited records that one caller less waits for the next extension: the caller is about to ask for it, or was
// cancelled. With the last caller, waited forgets the ttl that these callers wanted.
func (k *Lock) waited() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.extending.waiting--; k.extending.waiting == 0 {
		k.extending.wanted = 0
	}
}

// extend adds the observer to the extension under way or, if there is none, begins an extension. It begins none after
// validity has ended: another owner may have had the key since. asked is the number of extensions that had begun when
// the caller came. serves reports that this extension began after that, and is for at least ttl. A new extension
// counts from asOf.
func (k *Lock) extend(ttl time.Duration, asked int, asOf time.Duration,
	observer decisionObserver,
) (r *round, serves bool, err error) {
	if err := k.Err(); err != nil {
		return nil, false, err
	}
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.Over() {
		return nil, false, k.over
	}
	x := &k.extending
	if x.begun > asked && x.latest.request.TTL >= ttl {
		if !x.latest.addObserverLocked(observer) {
			after.observer, after.observed = observer, x.latest
		}
		return x.latest, true, nil
	}
	for _, r := range [...]*round{x.latest, k.renewal.round} {
		if r != nil && r.addObserverLocked(observer) {
			x.wanted = max(x.wanted, ttl)
			x.waiting++
			return r, false, nil
		}
	}
	r = k.newExtensionLocked(max(ttl, x.wanted), asOf, observer)
	x.latest, x.wanted = r, 0
	if x.begun++; x.begun == 1 {
		after.unpassed = k
	}
	k.issueLocked(r, &after)
	return r, true, nil
}

// newExtensionLocked prepares an extension, of a configuration that was current as of then.
func (k *Lock) newExtensionLocked(ttl, asOf time.Duration, observer decisionObserver) *round {
	k.longest = max(k.longest, ttl)
	r := k.newRoundLocked(k.request(single.Request{Op: single.Extend, TTL: ttl}), observer)
	r.repairs = true
	r.start = min(r.start, asOf)
	return r
}

// extended applies a decided extension. It also reports that the hold is over.
func (k *Lock) extended(r *round) (over bool, err error) {
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	err = k.extendedLocked(r, &after)
	return k.state.Over(), err
}

// extendedLocked applies a decided extension. The extension counts only if it was decided before the old bound. Until
// then no other owner could have had a quorum; afterwards one could, in between.
func (k *Lock) extendedLocked(r *round, after *effects) error {
	late := k.locker.clock.Now() >= k.until
	switch {
	case k.state.Over():
		return k.over
	case late:
		k.lapseLocked(after)
		k.releaseLocked(nil, after)
		return k.over
	case r.verdict == won:
		k.bindLocked(r, r.validUntil())
		return nil
	case r.verdict == denied:
		k.overLocked(hold.Lost, r.failureLocked(errLost), after)
		k.releaseLocked(nil, after)
		return k.over
	default:
		return r.unreachedLocked(r.decisive())
	}
}

// Repair sets the key of a held lock again on masters that have lost it. Such a master restarted, or refused the
// acquisition because of another owner's leftover that is gone now. Without repair, the next failure would meet a
// lock on a bare majority. But a key that was set again says nothing about the time before, and must not count as a
// key that was always there. Hence two rules, each with the failure that it prevents:
//
//   - Nothing is set again before an extension has been won by masters that had the key. Otherwise: three of five
//     masters have lost the key. One gets it back by an extension that fails, because the other two do not answer.
//     The next extension finds the key on a quorum, and wins, although the lock was free in between and another owner
//     may have had it.
//   - A master that did not answer its repair does not count until an extension has been won without that master. The
//     time at which the master set the key is unknown, and it may not have set the key at all. A stopped master may
//     set it a minute later, and by then two others may have lost their keys.
//
// A repair is part of the order of the hold's operations on its master (see order.go), so a release undoes it.

// repair is a call that sets a held key again on one master.
type repair struct {
	lane.Call
	request single.Request
	lock    *Lock
}

// errContinuityUnknown is why a granted extension did not count.
var errContinuityUnknown = errors.New("the key was set again, and it is not known when")

// gone reports that the key was absent and that no other owner had it.
func gone(c *lane.Call) bool {
	return c.Err == nil && c.Reply.Outcome == single.Refused && c.Reply.TTL == 0 && c.Reply.Holder == ""
}

// continuityUnknown reports that c, which has ended, granted an extension of a key, or a key handed over, that may not
// have been there all the time.
func (r *round) continuityUnknown(c *lane.Call) bool {
	return (r.request.Op == single.Extend || r.request.Op == single.Transfer) && c.Reply.Outcome == single.Granted &&
		r.lock.states[c.Index].continuityUnknown
}

// repairsLocked follows a vote of an extension that is won. It prepares the repairs, which are sent after the mutex
// has been unlocked. It trusts masters again that were repaired and have the key.
func (k *Lock) repairsLocked(r *round) (repairs []*repair) {
	if r.verdict != won || k.state.Over() || k.locker.clock.Now() >= k.until {
		return nil
	}
	for i := range r.ballots {
		s, b := &k.states[i], &r.ballots[i]
		if b.ended && b.Err == nil && b.Reply.Outcome == single.Granted {
			s.continuityUnknown = false
		}
		if s.gone && s.last == nil { // an operation that has been sent since then finds out for itself
			repairs = append(repairs, k.newRepairLocked(i, k.repairTTLLocked(r)))
		}
	}
	return repairs
}

// repairTTLLocked returns the ttl of a repair: as long as the hold counts on the key, by the fastest of clocks. That
// is longer than the ttl of the round if a shorter extension has not moved the bound.
func (k *Lock) repairTTLLocked(r *round) time.Duration {
	left := float64(k.until-k.locker.clock.Now()+expiryGranularity) / (1 - k.locker.opts.DriftFactor)
	return max(r.request.TTL, min((time.Duration(left)+time.Millisecond).Truncate(time.Millisecond), k.longest))
}

// newRepairLocked prepares a repair.
func (k *Lock) newRepairLocked(i int, ttl time.Duration) *repair {
	p := &repair{lock: k, request: k.request(single.Request{Op: single.Extend, TTL: ttl, Repair: true})}
	p.Call = lane.Call{
		Call: single.Call{Request: &p.request}, Index: i, To: p, Deadline: time.Now().Add(k.spec.timeout),
		Timeout: k.spec.timeout,
	}
	s := &k.states[i]
	s.last, s.gone, s.continuityUnknown = &p.Call, false, true
	s.trace.Setting()
	return p
}

// Ended implements [lane.Receiver].
func (p *repair) Ended(c *lane.Call) {
	k := p.lock
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.Err == nil || !c.Sent {
		k.states[c.Index].continuityUnknown = false // what the next extension finds was there from now on, or never
	}
	k.settleLocked(c)
}
