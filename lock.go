package redlock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/lockcontext"
	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/surplus"
)

// Lock is one hold of one key. It is never reacquired and never reused. It is held from the return of Acquire until
// Release is called, its validity ends, or it is found to be lost. All methods are safe for concurrent use.
//
// The end of a lock does not stop the holder's work: the holder does. Watch Done or work under Context. Ask Err
// before a step that can't be undone. Let the resource check fencing tokens where it can.
type Lock struct {
	locker      *Locker
	spec        *spec
	hold        hold.Hold
	contexts    lockcontext.Contexts
	unconfirmed atomic.Pointer[QuorumError] // what Release returns if it was not won
}

// acquisition is a spec as the waiters know it: it makes the locks.
type acquisition spec

// Make implements [contend.Locks].
func (s *acquisition) Make(value string) *hold.Hold {
	k := (*spec)(s).newLock(value)
	if k == nil {
		return nil
	}
	return &k.hold
}

// newLock prepares one attempt in the name of value, or of a new owner (""); nothing is sent yet. It returns nil if the
// Locker was closed.
func (s *spec) newLock(value string) *Lock {
	made := new(struct { // one piece of memory; a successor needs no lease
		Lock
		of hold.Lease
	})
	k := &made.Lock
	k.locker, k.spec = s.locker, s
	if !k.hold.Init(&s.locker.env, (*handle)(k), &s.Terms, &made.of, value) {
		return nil
	}
	return k
}

// Succeed implements [contend.Locks].
func (s *acquisition) Succeed(o *hold.Offer) *hold.Hold {
	k := &Lock{locker: s.locker, spec: (*spec)(s)}
	if !o.To(&k.hold, (*handle)(k), &s.Terms) {
		return nil
	}
	return &k.hold
}

// result is what the caller of an acquisition gets.
func (s *spec) result(ctx context.Context, h *hold.Hold, f *contend.Failure) (*Lock, error) {
	if f != nil {
		return nil, s.locker.explain(ctx, s, f)
	}
	return lockOf(h), nil
}

// handle is a Lock as its hold knows it.
type handle Lock

// Over implements [hold.Handle].
func (k *handle) Over(reason error) { k.contexts.End(reason) }

// Answered implements [hold.Handle].
func (k *handle) Answered(c *lane.Call, refused bool) {
	k.spec.Answered(len(k.locker.names), &k.hold, c, refused)
}

// Patience implements [hold.Handle].
func (k *handle) Patience(took time.Duration) time.Duration {
	return k.spec.Patience(&k.hold, took, k.locker.crowd.Slowest())
}

// lockOf returns the lock of a hold.
func lockOf(h *hold.Hold) *Lock {
	return (*Lock)(h.Handle().(*handle)) //nolint:forcetypeassert // no other type implements it
}

// isNone reports that k is no lock: Acquire returned it together with an error, or Acquire did not make it.
func (k *Lock) isNone() bool { return k == nil || k.locker == nil }

// Key returns the key; of a lock on several keys the first.
func (k *Lock) Key() string {
	if k.isNone() {
		return ""
	}
	return k.locker.shown(k.spec.Keys[0])
}

// Keys returns all keys of the lock, sorted.
func (k *Lock) Keys() []string {
	if k.isNone() {
		return nil
	}
	return k.locker.allShown(k.spec.Keys)
}

// String names the lock by its keys and its ID: a lock that is printed does not tell its owner value.
func (k *Lock) String() string {
	if k.isNone() {
		return "no lock"
	}
	return fmt.Sprintf("lock on %s #%s", brief(strings.Join(k.Keys(), ",")), k.ID())
}

// GoString is String, so that %#v shows no more.
func (k *Lock) GoString() string { return k.String() }

// LogValue implements [slog.LogValuer].
func (k *Lock) LogValue() slog.Value { return slog.StringValue(k.String()) }

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
	return k.hold.Owner()
}

// Remaining returns for how long the lock is sure to be held from now on, zero when it is over.
func (k *Lock) Remaining() time.Duration {
	if k.isNone() {
		return 0
	}
	return max(0, k.hold.Left())
}

// Until returns the end of the lock's validity as a time of this process, which moves when the lock is extended. It is
// the present or earlier once the lock is over.
func (k *Lock) Until() time.Time {
	if k.isNone() {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(k.hold.Left())
}

// Err returns nil while the lock is held, and then an error that matches [ErrNotHeld] and says why not; it also matches
// [ErrOutdated] if [AutoRenew] could not prevent the end for that reason. It reads the
// clock, so it knows of an end that no timer has noticed yet, as on a busy machine or after the machine was suspended.
func (k *Lock) Err() error {
	if k.isNone() {
		return ErrNotHeld
	}
	return k.hold.Err()
}

// Token returns the fencing token of a [Fenced] lock, and 0 of any other. A resource that keeps the greatest token it
// has seen, and refuses smaller ones, is safe from holders that lost their lock.
func (k *Lock) Token() uint64 {
	if k.isNone() {
		return 0
	}
	return k.hold.Token()
}

// Extend sets the end of the lock to ttl from now, and never shortens it. The votes of a quorum that never lost the
// key decide, so the lock was never free in between. Masters that have lost the key get it back after that. Extend
// waits for another extension or renewal that is under way. Each takes at most a request timeout.
//
// On error the lock keeps its old end and nothing is released. Only with [ErrNotHeld] is the lock over. After
// [ErrNoQuorum] try again, unless it is [ErrMisconfigured]. A ttl that Acquire refuses is [ErrInvalid]. ctx bounds the
// wait, not the effect: the lock may still be extended afterwards, or found lost.
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
	f, err := k.hold.Extend(ctx, ttl, k.current)
	switch {
	case err != nil:
		return err
	case f != nil && f.Fault == hold.Ended:
		return k.Err()
	}
	return k.failed(ctx, f)
}

// failed returns the error of an operation of the lock; nil for no failure.
func (k *Lock) failed(ctx context.Context, f *hold.Failure) error {
	return k.locker.explain(ctx, k.spec, k.locker.crowd.Failed(&k.spec.Acquisition, f))
}

// current waits until the Locker knows that its configuration allows an extension. It does not check whether the
// masters still have the key. A lock that is over returns its own error: the error must not suggest another try.
// While the Locker is being closed, held locks can still be extended.
func (k *Lock) current(ctx context.Context) (asOf time.Duration, err error) {
	if err := k.Err(); err != nil {
		return 0, err
	}
	var sent time.Time
	asOf, f := k.locker.crowd.AwaitCurrent(ctx, nil, k.spec.Timeout, &sent)
	if f != nil {
		return 0, cmp.Or(k.Err(), k.locker.explain(ctx, k.spec, f))
	}
	return asOf, nil
}

// Verify asks the masters whether they still have this lock's key, and returns nil if a quorum has it. After the end
// of the lock's validity it fails at once, as [Lock.Err] does. Verify extends nothing. With [ErrNotHeld] the lock is
// over, since a majority of masters has lost it. After another error it goes on.
func (k *Lock) Verify(ctx context.Context) error {
	if err := k.Err(); err != nil {
		return err
	}
	if ctx == nil {
		return invalid("nil context")
	}
	f := k.hold.Verify(ctx)
	if f != nil && f.Fault == hold.Ended {
		return k.Err()
	}
	return k.failed(ctx, f)
}

// Release removes the key from all masters, and returns nil when a quorum has confirmed. That takes one round trip.
// Masters that have not confirmed by then are asked again in the background until they confirm or the key's ttl is
// over. If another goroutine of the Locker waits for the key, Release may pass the lock on to it instead,
// and returns nil at once. Release ignores the cancellation of ctx, so that it leaves no key
// behind. It takes no longer than the request timeout.
//
// After Release the lock is over, also after an error, except [ErrInvalid] for a nil context. Do not retry: a second
// Release returns the same result. The errors:
//
//   - [ErrNotHeld]: the lock was over before, or a majority of masters did not have it any more. The work under it
//     may have overlapped with another holder. Its key is gone from the masters, or soon will be.
//   - [ErrNoQuorum]: the lock protected the work, and its key may still keep others out. The Locker asks masters that
//     have not confirmed again every 200 ms, with about 8,192 pending releases each at most. Without an answer the
//     key lapses there, no later than the ttl of the last acquisition or extension. (On a master that was stopped
//     with an unread acquisition, the ttl starts when it goes on.) If the process ends before that, the key lapses by
//     its ttl. [Locker.Close] waits until no key is left, or lists the remaining keys.
//   - [ErrClosed], together with ErrNotHeld: Close ended the lock; its key lapses by its ttl.
func (k *Lock) Release(ctx context.Context) error {
	if k.isNone() {
		return ErrNotHeld
	}
	if ctx == nil {
		return invalid("nil context")
	}
	k.hold.Release(k.spec.MinHold > 0 && surplus.Is(ctx))
	why, lost, over := k.hold.Outcome()
	switch {
	case why == hold.Passed, why == hold.Released && lost == nil:
		return nil
	case why != hold.Released:
		return over
	}
	// the first is kept, because answers that come later would change it
	k.unconfirmed.CompareAndSwap(nil,
		k.locker.quorumError(lost, k.locker.decisive(&lost.Facts), releaseReasons[lost.Verdict], nil))
	return k.unconfirmed.Load()
}

// lost reports of a lock that was released that it was over before that.
func (k *Lock) lost() bool {
	why, lost, _ := k.hold.Outcome()
	return why != hold.Passed && (why != hold.Released || lost != nil && lost.Verdict == denied)
}
