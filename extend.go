package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file takes the extensions of one hold in turns. A master is never sent an operation before its earlier one for the
// same hold has ended (see hold.go), so an extension that began while another was under way would spend its request
// timeout behind that one. What the turns prevent:
//
//   - Masters take more than half the request timeout, and two callers extend at the same time, or one while the lock is
//     being renewed. The first succeeds; the second is told that too few masters answered in time.
//   - Eight callers extend at the same time, and the last waits for seven round trips.
//   - A majority has lost the key. The first extension sets it again on some masters and is not decided yet; the second
//     finds it there, and wins, although the lock was free in between.
//
// So there is one at a time. Those who ask while it is under way get the next one, all of them together: it begins after
// they asked, and for the longest ttl among theirs, since none ever shortens. A renewal does not wait: it is tried again.

// extending is what a hold knows of its extensions other than renewals. The lock's mutex guards it.
type extending struct {
	latest *round
	begun  int           // how many there were
	wanted time.Duration // by those who wait for the next one
}

// Extend lets the lock live for ttl from now, instead of until its present end; it never shortens it. Masters that
// have lost the key get it back, once a quorum of those that never lost it has answered: only these count, so the lock
// was never free in between. Another extension that is under way, or a renewal, is decided first; that takes a request
// timeout at the most, as this one does.
//
// On error the lock keeps its old end and nothing is released, unless the error matches [ErrNotHeld]: then the lock
// is over. [ErrNoQuorum] means that it is worth trying again. ctx bounds the wait, not the effect.
func (k *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if k == nil {
		return ErrNotHeld
	}
	if ctx == nil {
		return invalid("nil context")
	}
	ttl = ttl.Truncate(time.Millisecond)
	if _, err := k.locker.checkTTL(ttl); err != nil {
		return err
	}
	for asked := -1; ; {
		w := k.locker.waiter()
		r, serves, err := k.extend(ttl, &asked, w)
		if err != nil {
			return err
		}
		if err := w.wait(ctx, k.spec.timeout, r); err != nil {
			return fmt.Errorf("redlock: extend %q: %w", k.Key(), err)
		}
		k.locker.recycle(w)
		// Also of one that only had to be waited for: whoever began it may not have applied it yet.
		if err := k.extended(r); serves || errors.Is(err, ErrNotHeld) {
			return err
		}
	}
}

// extend has tell be told of the extension under way or, if there is none, begins one, unless validity is already over:
// then the key may have been somebody else's since. serves says that it began after the caller asked, and is for as long.
// asked is how many had begun then, negative on the first call.
func (k *Lock) extend(ttl time.Duration, asked *int, tell decider) (r *round, serves bool, err error) {
	if err := k.Err(); err != nil {
		return nil, false, err
	}
	k.mu.Lock()
	x := &k.extending
	if *asked < 0 {
		*asked = x.begun
	}
	if k.over != nil {
		defer k.mu.Unlock()
		return nil, false, k.over
	}
	if x.begun > *asked && x.latest.request.TTL >= ttl {
		r = x.latest
		joined := r.join(tell)
		k.mu.Unlock()
		if !joined {
			tell.decided(r)
		}
		return r, true, nil
	}
	for _, r := range [...]*round{x.latest, k.renewal.round} {
		if r != nil && r.join(tell) {
			x.wanted = max(x.wanted, ttl)
			k.mu.Unlock()
			return r, false, nil
		}
	}
	r = k.newExtension(max(ttl, x.wanted), tell)
	x.latest, x.wanted = r, 0
	x.begun++
	k.issue(r)
	return r, true, nil
}

// newExtension prepares an extension. The caller holds the mutex.
func (k *Lock) newExtension(ttl time.Duration, tell decider) *round {
	k.longest = max(k.longest, ttl)
	sab := &k.locker.opts.Sabotage
	repair := sab.CountRepairs || sab.EagerRepair
	r := k.newRound(k.request(single.Request{Op: single.Extend, TTL: ttl, Repair: repair}), tell)
	r.mends = true
	return r
}

// extended applies a decided extension. It counts only if it was decided before the old bound: until then nobody else
// could have had a quorum, afterwards somebody could, in between.
func (k *Lock) extended(r *round) error {
	k.mu.Lock()
	late := k.locker.clock.Now() >= k.until && !k.locker.opts.Sabotage.LateExtend
	switch {
	case k.over != nil:
		defer k.mu.Unlock()
		return k.over
	case late:
		reason := k.lapse()
		k.finishLocked(reason, nil)
		return reason
	case r.verdict == won:
		k.bind(r, r.validUntil())
		k.mu.Unlock()
		return nil
	case r.verdict == denied:
		err := r.failure(errLost)
		k.finishLocked(err, nil)
		return err
	default:
		defer k.mu.Unlock()
		return r.failure(ErrNoQuorum)
	}
}
