package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/internal/electing"
)

// Election elects one leader at a time among candidates in any number of processes: the holder of the lock on the
// election's key leads. Each candidate makes an Election with the same key, on the same masters. An Election keeps no
// state, needs no Close, and is safe for concurrent use.
//
// A leadership has the guarantees of a lock: under the package's assumptions no two overlap within their validity.
// Fencing tokens order the terms in any case. When a leader dies, another follows after at most ttl and one round of
// the candidates; when a leader resigns, at once.
type Election struct {
	locker *redlock.Locker
	key    string
	ttl    time.Duration
	opts   []redlock.Option
}

// NewElection makes an election on key. A leadership is renewed every third of ttl while its process lives; after the
// process dies, the others wait for up to ttl. Terms are always [redlock.Fenced] and renewed. [redlock.MaxHold] limits
// a term, also if its leader hangs. With [redlock.MaxRenewals] a term ends with its validity after so many renewals.
// [redlock.MaxAttempts] limits the attempts of a Campaign, which may then end with [redlock.ErrContended]. NewElection
// sends nothing. The error matches [redlock.ErrInvalid].
func NewElection(locker *redlock.Locker, key string, ttl time.Duration, opts ...redlock.Option) (*Election, error) {
	opts = append([]redlock.Option{redlock.AutoRenew(), redlock.Fenced()}, opts...)
	if err := locker.Validate(electing.Context(context.Background(), false), key, ttl, opts...); err != nil {
		return nil, err
	}
	return &Election{locker, key, ttl, opts}, nil
}

// check refuses an Election that NewElection has not made. e may be nil.
func (e *Election) check() error {
	if e == nil || e.locker == nil {
		return fmt.Errorf("%w: an Election must be made by NewElection", redlock.ErrInvalid)
	}
	return nil
}

// Term is one term of one leader. It is safe for concurrent use. A nil one is over, as a nil [redlock.Lock] is.
type Term struct{ lock *redlock.Lock }

// hold is the lock that the term is, nil of no term.
func (t *Term) hold() *redlock.Lock {
	if t == nil {
		return nil
	}
	return t.lock
}

// Campaign waits until this candidate leads, or ctx is done; candidates of one Locker take turns. The errors are the
// errors of [redlock.Locker.Acquire]. The caller must call Resign, also when the leadership has ended by itself.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, errNoContext
	}
	return e.campaign(ctx, false)
}

func (e *Election) campaign(ctx context.Context, endures bool) (*Term, error) {
	lock, err := e.locker.Acquire(electing.Context(ctx, endures), e.key, e.ttl, e.opts...)
	if err != nil {
		return nil, err
	}
	return &Term{lock: lock}, nil
}

// Run is a candidate until ctx is done: it campaigns, calls lead when elected, and campaigns again when lead has
// returned. lead's context is cancelled, with a cause, when the leadership ends. lead should return soon after, since
// another candidate may lead from then on. Run waits for lead, so one candidate never leads twice at the same time.
//
// If lead returns nil, Run resigns and campaigns again. If the leadership is over, Run also campaigns again after an
// error that matches [context.Canceled] or [redlock.ErrNotHeld]. After any other error of lead, Run resigns and returns
// the error.
//
// Run returns ctx's error, together with its cause, when ctx is done. It returns [redlock.ErrClosed] when the Locker is
// closed, which also cancels lead's context.
//
// It returns the error of a campaign that can't be won ([redlock.MaxAttempts], [redlock.MaxOutage]). It goes on while
// masters complain of something that an operator has to mend: it asks every few seconds and tells the Observer
// ([redlock.EventComplaint]). When Run returns, also by a panic of lead, this candidate does not lead any more.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	if lead == nil {
		return errNoFunction
	}
	if ctx == nil {
		return errNoContext
	}
	if err := e.check(); err != nil {
		return err
	}
	for {
		term, err := e.campaign(ctx, true)
		if err == nil {
			err = term.serve(ctx, e.locker.Closing(), lead)
		} else if ctx.Err() != nil {
			err = nil // why it did not win is no matter
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("redlock: election %.200q: %w", e.key, cause.Of(ctx))
		}
	}
}

var (
	errNoFunction = fmt.Errorf("%w: nil function", redlock.ErrInvalid)
	errNoContext  = fmt.Errorf("%w: nil context", redlock.ErrInvalid)
)

// serve calls lead for one term, and returns its error unless the end of the term explains it. A Locker that is being
// closed ends the term: it waits for it.
func (t *Term) serve(ctx context.Context, closing <-chan struct{},
	lead func(ctx context.Context, term *Term) error,
) error {
	defer func() { _ = t.Resign(ctx) }() // what is left on masters is the janitor's; that the term was over, lead knows
	ctx, cancel := context.WithCancelCause(ctx)
	served := make(chan struct{})
	defer close(served)
	go func() {
		select {
		case <-closing:
			cancel(redlock.ErrClosed)
		case <-served:
			cancel(nil)
		}
	}()
	err := lead(t.Context(ctx), t)
	over := t.Err() != nil || ctx.Err() != nil
	ends := errors.Is(err, context.Canceled) || errors.Is(err, redlock.ErrNotHeld) || errors.Is(err, context.Cause(ctx))
	if over && ends {
		return nil
	}
	return err
}

// Leader asks the masters who leads; [Observe] reports changes. Holder.Token and Holder.Value are set if the
// leader's election has the option [redlock.Published]. Holder.ID equals the leader's own [Term.ID]. Any Locker on the
// same masters can ask, candidate or not. The answer may be outdated when it arrives: use it to find the leader, not
// to act in its place. The error matches [redlock.ErrNoQuorum] when too few masters answered.
func (e *Election) Leader(ctx context.Context) (redlock.Holder, error) {
	if err := e.check(); err != nil {
		return redlock.Holder{}, err
	}
	return e.locker.Holder(ctx, e.key)
}

// ID differs for every term. [Election.Leader] returns it as Holder.ID. It is no secret.
func (t *Term) ID() string { return t.hold().ID() }

// Token returns the term's fencing token, which is greater than the token of every earlier term. Resources that check
// it (see package fence) are safe from a leader that has not noticed the end of its term.
func (t *Term) Token() uint64 { return t.hold().Token() }

// Context returns a context that is cancelled when the term ends, with the reason as its cause, or when parent is.
func (t *Term) Context(parent context.Context) context.Context { return t.hold().Context(parent) }

// Done returns a channel that is closed when the term ends. A leader that can't renew its term learns of the end
// before the masters can elect another. [redlock.Lock.Done] has the exception: a suspended machine.
func (t *Term) Done() <-chan struct{} { return t.hold().Done() }

// Err returns nil during the term, and afterwards why it ended; the error matches [redlock.ErrNotHeld]. It reads the
// clock: ask it before a step that can't be undone.
func (t *Term) Err() error { return t.hold().Err() }

// Until returns the time until which the term certainly lasts if no renewal succeeds.
func (t *Term) Until() time.Time { return t.hold().Until() }

// Resign ends the term, and lets the next candidate lead at once. It returns the errors of [redlock.Lock.Release]: nil
// when the term lasted until Resign, [redlock.ErrNotHeld] when it had ended before. It ignores the cancellation of ctx.
// A second Resign returns the same result.
func (t *Term) Resign(ctx context.Context) error { return t.hold().Release(ctx) }
