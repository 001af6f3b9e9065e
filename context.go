package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/internal/lockcontext"
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
	return k.contexts.New(parent, &k.hold)
}

func cancelled(parent context.Context, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(cause)
	return ctx
}

// FromContext returns the lock to which ctx belongs: ctx is the lock's [Lock.Context], the context that [Locker.Do]
// gives its function, or a descendant. Use it for the lock's Token, Remaining or Extend. Of several locks it is the
// innermost. ok is false if there is none. The lock may be over; ask its Err. Inside Do, leave Release to Do.
func FromContext(ctx context.Context) (lock *Lock, ok bool) {
	if ctx == nil {
		return nil, false
	}
	c := lockcontext.Of(ctx)
	if c == nil {
		return nil, false
	}
	return lockOf(c.Hold), true
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
