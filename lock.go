package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

// Lock is one hold of one key. It is never reacquired and never reused. It is held from the return of Acquire until
// Release is called, its validity ends, or it is found to be lost. All methods are safe for concurrent use.
//
// The end of a lock does not stop the holder's work: the holder does. Watch Done or work under Context. Ask Err
// before a step that can't be undone. Let the resource check fencing tokens where it can.
type Lock struct {
	locker *Locker
	spec   *spec
	*lease // its mutex guards what follows

	entry hold.Entry[*Lock]

	until       time.Duration // when validity ends, by the locker's clock; 0 before it was acquired
	began       time.Duration // when the attempt began
	since       time.Duration // when the acquisition began that was won
	atMost      time.Duration // until never passes this; 0: no limit
	unused      bool          // it was not needed, so that its key is not kept for a while
	state       hold.State
	over        error         // why the hold is over; nil while it is not
	ending      *round        // the release, once there is one
	unconfirmed *QuorumError  // what Release returns if it was not won
	token       uint64        // of a fenced lock
	done        chan struct{} // made on first use
	contexts    contexts

	extending extending
	renewal   renewal
	attention schedule.Entry // when the hold next needs some
}

// onlyHold is the hold of an owner that was made for it. That of an owner that may have others is random.
const onlyHold = "1"

// newLock prepares one attempt; nothing is sent yet.
func (l *Locker) newLock(s *spec) (*Lock, error) {
	made := new(struct { // one piece of memory; a successor needs no lease
		Lock
		of lease
	})
	k := &made.Lock
	k.locker, k.spec, k.lease = l, s, &made.of
	k.owner, k.present = s.owner, k
	if n := len(l.lanes); n <= fewMasters {
		k.states = k.few[:n]
	} else {
		k.states = make([]masterState, n)
	}
	if k.owner == "" {
		k.owner = owner.New(l.opts.Identity)
	}
	switch {
	case s.kind == single.Plain:
	case s.owner == "":
		k.hold = onlyHold
	default:
		k.hold = owner.Random()
	}
	if !l.holds.Enter(&k.entry, k) {
		return k, ErrClosed
	}
	return k, nil
}

// request completes a request for this hold.
func (k *Lock) request(r single.Request) single.Request {
	r.Kind, r.Keys, r.Owner, r.Hold, r.Within = k.spec.kind, k.spec.keys, k.owner, k.hold, k.spec.within
	if r.Op == single.Extend {
		r.Token = k.token
	}
	return r
}

// run performs one more operation of the hold and waits until it is decided.
func (k *Lock) run(ctx context.Context, request single.Request) (*round, error) {
	w := k.locker.newRoundWait()
	r, err := k.begin(request, w)
	if err != nil {
		return nil, err
	}
	if err := w.wait(ctx, k.spec.timeout, r); err != nil {
		return nil, err
	}
	k.locker.recycle(w)
	return r, nil
}

// begin sends one more operation of the hold, unless it is over.
func (k *Lock) begin(request single.Request, observer decisionObserver) (*round, error) {
	var after effects
	defer after.run() // after unlocking
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.Over() {
		return nil, k.over
	}
	r := k.newRoundLocked(request, observer)
	if takes(request.Op) {
		r.start = min(r.start, k.asOf)
	}
	r.verifies = request.Op == single.Extend // what is to extend something takes its turn; see extend.go
	k.issueLocked(r, &after)
	return r, nil
}

// takes reports that an operation gets a hold its keys: free keys, or the keys of another owner that it names.
func takes(op single.Op) bool { return op == single.Acquire || op == single.Transfer }

// take sends the request that gets the hold its keys. After a failure the lock is not held, and the keys that the
// request has set are being released.
func (k *Lock) take(ctx context.Context, request single.Request) (f *failure) {
	if r, err := k.run(ctx, request); err != nil {
		f = failed(fmt.Errorf("redlock: %s %q: %w", opNames[request.Op], k.Key(), err))
	} else {
		f = k.acquired(ctx, r)
	}
	k.locker.reached(k.spec, f, k.began)
	if f != nil {
		k.finish(hold.Abandoned, nil)
	}
	return f
}

// acquired turns a decided acquisition into a held lock. After a failure it is not held, and nothing has been released
// yet.
func (k *Lock) acquired(ctx context.Context, r *round) *failure {
	k.mu.Lock()
	fences := r.verdict == won && k.spec.fenced && k.token == 0
	k.mu.Unlock()
	if fences {
		if f := k.fence(ctx, r); f != nil {
			return f
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	until := r.validUntil()
	k.passing.ends, k.passing.bound = r.start+k.passing.window, until
	if k.spec.maxHold > 0 {
		k.atMost = later(r.start, k.spec.maxHold)
		until = min(until, k.atMost)
	}
	if k.state.Over() { // the Locker was shut down
		return failed(ErrClosed)
	}
	if f := r.resultLocked(r.refusal()); f != nil {
		return f
	}
	if until <= k.locker.clock.Now()+k.spec.grace {
		return failedVotes(failLate, r.failureLocked(ErrExpired))
	}
	// what was handed over and may have been set late is this hold's from now on, like the rest
	for i := range r.ballots {
		if b := &r.ballots[i]; b.ended && b.Err == nil && b.Reply.Outcome == single.Granted {
			k.states[i].continuityUnknown = false
		}
	}
	k.since = r.start
	k.state.Acquire()
	k.bindLocked(r, until)
	return nil
}

// bindLocked moves the bound, never back, and schedules the next action: the renewal, or the end.
func (k *Lock) bindLocked(r *round, until time.Duration) {
	if k.atMost > 0 {
		until = min(until, k.atMost)
	}
	k.until = max(k.until, until)
	k.renewal.plan(k.spec, r.start, r.request.TTL)
	k.scheduleLocked()
}

// isNone reports that k is no lock: Acquire returned it together with an error, or Acquire did not make it.
func (k *Lock) isNone() bool { return k == nil || k.locker == nil }

// Key returns the key; of a lock on several keys the first.
func (k *Lock) Key() string {
	if k.isNone() {
		return ""
	}
	return k.locker.shown(k.spec.keys[0])
}

// Keys returns all keys of the lock, sorted.
func (k *Lock) Keys() []string {
	if k.isNone() {
		return nil
	}
	return k.locker.allShown(k.spec.keys)
}

// ID tells the lock from others that are held at the same time: [Holder].ID is the same. It is a fingerprint of the
// owner value and no secret. The holds of one [Reentrant] owner have one ID, and so have locks that were passed on from
// one goroutine of a Locker to another, one after the other.
func (k *Lock) ID() string { return owner.Fingerprint(k.Owner()) }

// Owner returns the value that proves on the masters who holds the key: the [Options].Identity and 128 random bits,
// or the owner given to [Reentrant]. It is a secret: anyone who knows it can release the lock.
func (k *Lock) Owner() string {
	if k.isNone() {
		return ""
	}
	return k.owner
}

// Remaining returns for how long the lock is sure to be held from now on, zero when it is over.
func (k *Lock) Remaining() time.Duration {
	if k.isNone() {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.Over() {
		return 0
	}
	return max(0, k.until-k.locker.clock.Now())
}

// Until returns the end of the lock's validity as a time of this process, which moves when the lock is extended. It is
// the present or earlier once the lock is over.
func (k *Lock) Until() time.Time {
	if k.isNone() {
		return time.Time{}
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.until - k.locker.clock.Now()
	if k.state.Over() {
		left = min(left, 0)
	}
	return now.Add(left)
}

// Err returns nil while the lock is held, and then an error that matches [ErrNotHeld] and says why not; it also matches
// [ErrOutdated] if [AutoRenew] could not prevent the end for that reason. It reads the
// clock, so it knows of an end that no timer has noticed yet, as on a busy machine or after the machine was suspended.
func (k *Lock) Err() error {
	if k.isNone() {
		return ErrNotHeld
	}
	var after effects
	defer after.run()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.state.Over() && k.locker.clock.Now() >= k.until {
		k.lapseLocked(&after)
		k.releaseLocked(nil, &after)
	}
	return k.over
}

// why returns the reason for which the hold is over by now.
func (k *Lock) why() hold.Why {
	_ = k.Err()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.Why
}

// lapseLocked ends the hold because its validity has ended, or is about to.
func (k *Lock) lapseLocked(after *effects) {
	if k.atMost > 0 && k.until >= k.atMost {
		k.overLocked(hold.MaxHold, nil, after)
		return
	}
	why := hold.Lapsed
	if k.locker.clock.Now() < k.until {
		why = hold.InGrace
	}
	reason := overErrors[why]
	if outdated := k.locker.outdated(k.locker.current.State().Newer); outdated != nil && k.spec.renew {
		reason = fmt.Errorf("%w, and it was not renewed: %w", reason, outdated)
	}
	k.overLocked(why, reason, after)
}
