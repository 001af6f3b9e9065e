package redlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Lock is one hold of one key: a handle that is never reacquired and never reused. It is held from the moment in which
// Acquire returned it until Release is called, its validity ends, or it is found to be lost. All methods are safe for
// concurrent use.
//
// Nothing but the holder's own care ends what the holder does when the lock is over: watch Done or work under Context,
// ask Err before anything that can't be undone, and let the resource check fencing tokens where it can.
type Lock struct {
	locker *Locker
	spec   *spec
	owner  string
	hold   string // tells the holds of one owner apart; "" for plain locks
	waiter string // under which name it waited, if it did

	next, prev *Lock // in the locker's list, which its mutex guards

	mu       sync.Mutex
	slots    []slot
	few      [fewMasters]slot // what slots are, of so many
	until    time.Duration    // when validity ends, by the locker's clock; 0 before it was acquired
	since    time.Duration    // when the acquisition began that was won
	atMost   time.Duration    // until never passes this; 0: no limit
	longest  time.Duration    // the greatest ttl that a master was asked for
	placed   bool             // its waiter may stand in the masters' queues since before it was acquired
	over     error            // why the hold is over; nil while it is not
	ending   *round           // the release that follows
	unclosed int              // masters whose release has not been settled
	token    uint64           // of a fenced lock
	done     chan struct{}    // made when somebody asks
	cancels  []context.CancelCauseFunc

	extending extending
	renewal   renewal
	alarm     alarm
}

// Why a hold is over. All of them match ErrNotHeld.
var (
	errReleased  = fmt.Errorf("%w: released", ErrNotHeld)
	errLapsed    = fmt.Errorf("%w: its validity ended", ErrNotHeld)
	errMaxHold   = fmt.Errorf("%w: MaxHold is over", ErrNotHeld)
	errLost      = fmt.Errorf("%w: lost on a majority of masters", ErrNotHeld)
	errAbandoned = fmt.Errorf("%w: its acquisition failed", ErrNotHeld)
	errShutDown  = fmt.Errorf("%w: %w", ErrNotHeld, ErrClosed)
)

// newLock prepares one attempt; nothing is sent yet.
func (l *Locker) newLock(s *spec) (*Lock, error) {
	n := len(l.lanes)
	k := &Lock{locker: l, spec: s, owner: s.owner, unclosed: n}
	if k.slots = k.few[:]; n <= fewMasters {
		k.slots = k.slots[:n]
	} else {
		k.slots = make([]slot, n)
	}
	if k.owner == "" {
		k.owner = s.label + newOwner()
	}
	if s.kind != single.Plain {
		k.hold = newOwner()
	}
	return k, l.enroll(k)
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
	w := k.locker.waiter()
	k.mu.Lock()
	if k.over != nil {
		defer k.mu.Unlock()
		return nil, k.over
	}
	r := k.newRound(request, w)
	k.issue(r)
	if err := w.wait(ctx, k.spec.timeout, r); err != nil {
		return nil, err
	}
	k.locker.recycle(w)
	return r, nil
}

// acquired turns a decided acquisition into a held lock. On error it is not held, and nothing has been released yet.
func (k *Lock) acquired(ctx context.Context, r *round) error {
	k.mu.Lock()
	verdict := r.verdict
	k.mu.Unlock()
	if verdict == won && k.spec.fenced {
		if err := k.fence(ctx, r); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	until := r.validUntil()
	switch {
	case k.over != nil: // the Locker was shut down
		return ErrClosed
	case verdict == denied:
		return r.failure(ErrHeld)
	case verdict != won:
		return r.failure(ErrNoQuorum)
	case until <= k.locker.clock.Now():
		return r.failure(ErrExpired) // granted, but too late to be of use
	}
	k.since = r.start
	if k.spec.maxHold > 0 {
		k.atMost = r.start + k.spec.maxHold
	}
	k.bind(r, until)
	return nil
}

// bind moves the bound, never back, and plans what comes next: the renewal, or the end. The caller holds the mutex.
func (k *Lock) bind(r *round, until time.Duration) {
	if k.atMost > 0 {
		until = min(until, k.atMost)
	}
	k.until = max(k.until, until)
	k.renewal.plan(k.spec, r.start)
	k.setAlarm()
}

// Key returns the key; of a lock on several keys the first.
func (k *Lock) Key() string { return k.spec.keys[0] }

// Keys returns all keys of the lock, sorted.
func (k *Lock) Keys() []string { return slices.Clone(k.spec.keys) }

// Owner returns the value that proves on the masters who holds the key. It is a secret in so far as whoever knows it
// can release the lock.
func (k *Lock) Owner() string { return k.owner }

// Remaining returns for how long the lock is sure to be held from now on, zero when it is over.
func (k *Lock) Remaining() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		return 0
	}
	return max(0, k.until-k.locker.clock.Now())
}

// Until returns the end of the lock's validity as a time of this process, which moves when the lock is extended. It is
// the present or earlier once the lock is over.
func (k *Lock) Until() time.Time {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.until - k.locker.clock.Now()
	if k.over != nil {
		left = min(left, 0)
	}
	return now.Add(left)
}

// Err returns nil while the lock is held, and then an error that matches [ErrNotHeld] and says why not. It reads the
// clock, so it knows of an end that no timer has noticed yet, as after the machine was suspended.
func (k *Lock) Err() error {
	if k == nil {
		return ErrNotHeld
	}
	k.mu.Lock()
	if k.over == nil && k.locker.clock.Now() >= k.until && !k.locker.opts.Sabotage.LateExtend {
		k.finishLocked(k.lapse(), nil)
		return k.Err()
	}
	defer k.mu.Unlock()
	return k.over
}

// lapse says why validity has ended.
func (k *Lock) lapse() error {
	if k.atMost > 0 && k.until >= k.atMost {
		return errMaxHold
	}
	return errLapsed
}

// Done returns a channel that is closed when the lock is over: released, lapsed or lost. It closes at the latest when
// validity ends, usually a millisecond before, except that no timer runs while the machine is suspended: Err knows
// then, and Done closes within a second of the resumption.
func (k *Lock) Done() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done == nil {
		k.done = make(chan struct{})
		if k.over != nil {
			close(k.done)
		}
	}
	return k.done
}

// Context returns a context that is cancelled when the lock is over, with the reason as its cause, or when parent is.
// Its Err reads the clock as the lock's does.
func (k *Lock) Context(parent context.Context) context.Context {
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancelCause(parent)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		cancel(k.over)
	} else {
		k.cancels = append(k.cancels, cancel)
	}
	return &lockContext{ctx, k}
}

// lockContext is a context that asks its lock.
type lockContext struct {
	context.Context
	lock *Lock
}

// lockContextKey is what a lockContext answers to with itself.
type lockContextKey struct{}

func (c *lockContext) Value(key any) any {
	if key == (lockContextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func (c *lockContext) Err() error {
	_ = c.lock.Err() // cancels the context if the lock is over
	return c.Context.Err()
}

// Release gives the lock back on all masters. It returns nil when a quorum has confirmed, which takes one round trip;
// masters that have not by then are asked again in the background until they confirm or the key's ttl is over. ctx's
// cancellation is ignored: Release takes no longer than the request timeout, and an ended context is no reason to
// leave a key behind.
//
// An error that matches [ErrNotHeld] says that the lock was over before, or that a majority of masters did not have
// it: what it protected may have overlapped with another holder. [ErrNoQuorum] says that too few confirmed in time;
// the keys left are removed later or lapse. Release again returns the same result.
func (k *Lock) Release(ctx context.Context) error {
	if k == nil {
		return ErrNotHeld
	}
	if ctx == nil {
		return invalid("nil context")
	}
	_ = k.Err() // notices a validity that is over
	w := k.locker.waiter()
	if r, undecided := k.finish(errReleased, w); r == nil {
		return k.Err()
	} else if undecided {
		_ = w.wait(context.Background(), k.spec.timeout, r) // ends with the timeout at the latest
	}
	k.locker.recycle(w)
	return k.released()
}

// released is what the caller of Release gets to know.
func (k *Lock) released() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.ending
	switch {
	case k.over != errReleased: //nolint:errorlint // which of our own values it is
		return k.over
	case r.verdict == won:
		return nil
	case r.verdict == denied:
		return r.failure(ErrNotHeld)
	default:
		return r.failure(ErrNoQuorum)
	}
}

// finish ends the hold, for the first reason given, and begins to release it everywhere. It returns the release, nil
// if the Locker was shut down before, and whether tell, which may be nil, is going to be told of its decision.
func (k *Lock) finish(reason error, tell decider) (r *round, undecided bool) {
	k.mu.Lock()
	if k.over == nil {
		return k.finishLocked(reason, tell), tell != nil
	}
	defer k.mu.Unlock()
	if k.ending == nil || tell == nil {
		return k.ending, false
	}
	return k.ending, k.ending.join(tell)
}

// finishLocked is finish of a hold that is not over, by a caller who has the mutex; it gives the mutex up. Whoever
// depends on the lock is told before the first master is.
func (k *Lock) finishLocked(reason error, tell decider) *round {
	k.tellOver(reason)
	var vacant []string
	request := k.request(single.Request{Op: single.Release, TTL: k.spec.ttl})
	if k.until > 0 { // a failed attempt reserves nothing, and keeps its place in the queue
		request.Reserve = k.locker.reserve()
		vacant = k.locker.lines.bequeath(k.spec.keys) // in the queues of the others the place is that of the next in line
	}
	allVacant := len(vacant) == len(k.spec.keys)
	if allVacant {
		request.Waiter = k.waiter
	}
	r := k.newRound(request, tell)
	k.ending = r
	k.issue(r)
	if len(vacant) > 0 && !allVacant && k.waiter != "" {
		k.locker.goodbye(k.spec, vacant)
	}
	return r
}

// abandon ends the hold without asking the masters, when the Locker is shut down: its keys lapse.
func (k *Lock) abandon() {
	k.mu.Lock()
	if k.over == nil {
		k.tellOver(errShutDown)
	}
	k.mu.Unlock()
	k.locker.forget(k)
}

// tellOver marks the hold as over. The caller holds the mutex.
func (k *Lock) tellOver(reason error) {
	k.over = reason
	k.locker.agenda.remove(k)
	if observer := k.locker.opts.Observer; observer != nil && k.until > 0 && reason != errReleased { //nolint:errorlint // our own
		observer(Event{
			Kind: EventLost, Key: strings.Join(k.spec.keys, ","), Err: reason, Held: true, HeldFor: k.locker.clock.Now() - k.since,
		})
	}
	if k.done != nil {
		close(k.done)
	}
	for _, cancel := range k.cancels {
		cancel(reason)
	}
	k.cancels = nil
}
