package redlock

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"
)

// Done returns a channel that is closed when the lock is over: released, lost, or about to lapse. It closes a [Grace]
// before validity ends, so that the holder can stop in time. On a busy or suspended machine timers can be later than
// the grace, and so can Done. Err reads the clock and knows the end in any case. After a suspension Done closes
// within a second.
//
// A lock that is in its grace still excludes others until its validity ends, or Release is called.
func (k *Lock) Done() <-chan struct{} {
	if k.isNone() {
		return alwaysDone
	}
	return k.hold.Done()
}

// alwaysDone is the Done of no lock.
var alwaysDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Context returns a context that is cancelled when the lock is over, with the reason as its cause, or when parent is.
// Its Err reads the clock as the lock's does; contexts that descend from it are cancelled when Done is closed. It costs
// the lock nothing any more once parent has ended; the same parent as in the call before gets the same context. Without
// a parent, or of a nil Lock, it is cancelled from the beginning.
func (k *Lock) Context(parent context.Context) context.Context {
	if parent == nil {
		return cancelled(context.Background(), invalid("nil context"))
	}
	if k.isNone() {
		return cancelled(parent, ErrNotHeld)
	}
	k.mu.Lock()
	c := k.contexts.last(parent)
	k.mu.Unlock()
	if c != nil {
		return c
	}
	c = &lockContext{lock: k, parent: parent}
	c.Context, c.cancel = context.WithCancelCause(parent)
	over := k.hold.Over()
	k.mu.Lock()
	if over = cmp.Or(over, k.over); over == nil {
		k.contexts.add(c)
	}
	k.mu.Unlock()
	if over != nil {
		c.cancel(over)
	}
	return c
}

func cancelled(parent context.Context, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(cause)
	return ctx
}

// lockContext is a context that asks its lock.
type lockContext struct {
	context.Context
	parent context.Context
	lock   *Lock
	cancel context.CancelCauseFunc
}

// lockContextKey is the key under which a lockContext returns itself.
type lockContextKey struct{}

func (c *lockContext) Value(key any) any {
	if key == (lockContextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func (c *lockContext) Err() error {
	if over := c.lock.Err(); over != nil {
		c.cancel(over)
	}
	return c.Context.Err()
}

// FromContext returns the lock to which ctx belongs: ctx is the lock's [Lock.Context], the context that [Locker.Do]
// gives its function, or a descendant. Use it for the lock's Token, Remaining or Extend. Of several locks it is the
// innermost. ok is false if there is none. The lock may be over; ask its Err. Inside Do, leave Release to Do.
func FromContext(ctx context.Context) (lock *Lock, ok bool) {
	if ctx == nil {
		return nil, false
	}
	c, ok := ctx.Value(lockContextKey{}).(*lockContext)
	if !ok {
		return nil, false
	}
	return c.lock, true
}

// pruneAt is the number of contexts from which a hold drops the contexts that have ended.
const pruneAt = 32

// contexts has the contexts of one hold that end with it. The lock's mutex guards them.
type contexts struct {
	live    []*lockContext
	pruneAt int // the length at which those that have ended are dropped
}

// last returns the latest context if it is one for parent: the same parent gets the same context.
func (cs *contexts) last(parent context.Context) *lockContext {
	if n := len(cs.live); n > 0 && sameContext(cs.live[n-1].parent, parent) {
		return cs.live[n-1]
	}
	return nil
}

// add keeps c until the hold is over. It drops contexts with an ended parent each time the list has doubled. So a
// long hold keeps at most twice the contexts in use, and add is cheap on average.
func (cs *contexts) add(c *lockContext) {
	if len(cs.live) >= max(cs.pruneAt, pruneAt) {
		cs.live = slices.DeleteFunc(cs.live, func(c *lockContext) bool { return c.Context.Err() != nil })
		cs.pruneAt = 2 * len(cs.live)
	}
	cs.live = append(cs.live, c)
}

// sameContext reports that two contexts are one; of kinds that can't be compared, that is not known.
func sameContext(a, b context.Context) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// Do acquires the lock, runs fn while renewing it, and releases it, also when fn panics. fn's context is cancelled,
// with a cause, when the lock is lost or ctx is done; fn should return soon after. A lock that can't be renewed
// leaves fn a tenth of the ttl for that, at most two seconds, before others can have the lock. [Grace] sets another
// time.
//
// If the acquisition fails, Do returns its error and does not call fn. Otherwise Do returns fn's error, joined with
// [ErrNotHeld] if the lock was lost before fn returned: fn's work may then have overlapped with another holder's. So
// Do can fail although fn returned nil; the effects of fn stay. A release that masters did not confirm is no error of
// Do: fn was protected, and the key is removed later or lapses, as [Lock.Release] says for ErrNoQuorum. A caller that
// must know of that uses Acquire and Release.
//
// fn finds the lock in its context. With [Fenced] a resource can refuse a holder that was overtaken:
//
//	err = locker.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
//		lock, _ := redlock.FromContext(ctx)
//		return store.Write(ctx, lock.Token(), order) // refuses a token below the greatest it has seen
//	}, redlock.Fenced())
func (l *Locker) Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...Option,
) error {
	return l.do(ctx, key, ttl, l.Acquire, fn, opts)
}

// TryDo is [Locker.Do] that does not wait: fn runs if [Locker.TryAcquire] gets the lock now. Otherwise it returns
// TryAcquire's error, which matches [ErrHeld] if another owner has the lock, and [ErrContended] if the votes stayed
// split.
func (l *Locker) TryDo(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error,
	opts ...Option,
) error {
	return l.do(ctx, key, ttl, l.TryAcquire, fn, opts)
}

// do runs fn under the lock that take gets.
func (l *Locker) do(
	ctx context.Context, key string, ttl time.Duration,
	take func(context.Context, string, time.Duration, ...Option) (*Lock, error),
	fn func(ctx context.Context) error, opts []Option,
) (err error) {
	if fn == nil {
		return invalid("nil function")
	}
	lock, err := take(ctx, key, ttl, append([]Option{AutoRenew(), forWork}, opts...)...)
	if err != nil {
		return err
	}
	defer func() {
		if released := lock.Release(ctx); lock.lost() {
			err = errors.Join(err, released)
		} // otherwise the work is done, and the janitor goes on where too few masters have confirmed
	}()
	return fn(lock.Context(ctx))
}

// Doer runs work under a lock. It is implemented by [*Locker] and by package sharded's Locker.
type Doer interface {
	Do(ctx context.Context, key string, ttl time.Duration, fn func(ctx context.Context) error, opts ...Option) error
}

// DoValue is [Locker.Do] for work that returns a value. It returns fn's value, also together with an error. An error
// that matches [ErrNotHeld] says that the lock was lost before fn returned; the caller decides whether to use the
// value. If fn was not called, the value is T's zero value.
func DoValue[T any](ctx context.Context, locker Doer, key string, ttl time.Duration,
	fn func(ctx context.Context) (T, error), opts ...Option,
) (T, error) {
	var value T
	if locker == nil {
		return value, invalid("nil Locker")
	}
	if fn == nil {
		return value, invalid("nil function")
	}
	err := locker.Do(ctx, key, ttl, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	}, opts...)
	return value, err
}
