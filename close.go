package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-624411e5/redlock/internal/cause"
)

// Close shuts the Locker down. New and waiting acquisitions fail with [ErrClosed] and leave the masters' queues. Then
// Close waits until every lock has been released or has lapsed, and every master has confirmed or the keys' ttls are
// over.
//
// If ctx has no deadline, Close waits as long as locks are held. Then it gives the masters 2 s to confirm, or twice
// [Options].RequestTimeout if that is more, so a master that hangs does not keep a program from ending. Unconfirmed
// keys lapse by their ttl, and the error, which matches [context.DeadlineExceeded], counts them.
//
// If ctx is done first, Close cancels the Contexts of the locks still held and stops renewals and requests. The error
// says which keys are left on the masters to lapse. Close takes no longer than ctx; requests under way end by their
// timeout. Otherwise no goroutine of the Locker is left when Close returns, except inside a Master or an Observer
// that does not return.
//
// A second Close waits for the first to return, and returns nil. If its own ctx is done before, it returns ctx's
// error and shortens nothing.
func (l *Locker) Close(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	if ctx == nil {
		return invalid("nil context")
	}
	if !l.env.Registry.Close() {
		return l.awaitClose(ctx)
	}
	defer close(l.ended)
	err := l.drain(ctx)
	l.env.Schedule.Close()
	l.env.Janitor.Close()
	for _, lane := range l.env.Lanes {
		lane.Close()
	}
	return errors.Join(err, l.awaitGoroutines(ctx), closeAll(l.owned))
}

// awaitClose waits for another call of Close.
func (l *Locker) awaitClose(ctx context.Context) error {
	select {
	case <-l.ended:
		return nil
	default:
	}
	select {
	case <-l.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redlock: close: waiting for another call of Close: %w", cause.Of(ctx))
	}
}

// awaitGoroutines waits for the requests under way, which end by their deadlines, and for the Observer to receive the
// remaining events. If one call of a Master or an Observer takes longer than that, awaitGoroutines stops waiting for
// it. Nothing waits longer than ctx.
func (l *Locker) awaitGoroutines(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		l.crowd.Subscription.Close()
		l.checks.Wait()
		_ = l.fanOut.Wait() // lanes return no errors
		close(ended)
	}()
	patience, enough := l.patience(ctx)
	defer enough()
	select {
	case <-ended:
	case <-patience.Done():
	}
	if l.observer == nil {
		return nil
	}
	return l.observer.close(ctx, l.patience)
}

// patience ends with ctx, or once all that is under way has had time to end. The caller calls the function when it
// waits no longer.
func (l *Locker) patience(ctx context.Context) (context.Context, func()) {
	patience, enough := context.WithCancel(ctx)
	timer := l.clock.AfterFunc(2*max(l.opts.RequestTimeout, maxRequestTimeout), enough)
	return patience, func() { timer.Stop(); enough() }
}

// drain waits for the locks and the janitor. If ctx ends first, its error lists the remaining keys.
func (l *Locker) drain(ctx context.Context) error {
	select {
	case <-l.env.Registry.Empty():
	case <-ctx.Done():
	}
	left := l.abandonAll()
	confirming := ctx
	if _, bounded := ctx.Deadline(); !bounded {
		patience, enough := l.patience(ctx)
		defer enough()
		confirming = patience
	}
	pending := l.env.Janitor.Drain(confirming)
	if left == 0 && pending == 0 {
		return nil
	}
	why := context.DeadlineExceeded
	if ctx.Err() != nil {
		why = cause.Of(ctx)
	}
	return fmt.Errorf("redlock: close: %d locks not released and %d keys not confirmed removed lapse by their ttl: %w",
		left, pending, why)
}

// abandonAll ends the locks that are left without asking the masters, and returns how many were held.
func (l *Locker) abandonAll() (n int) {
	// Again, because a lock that is passed on meanwhile has a successor.
	for locks := l.env.Registry.All(); len(locks) > 0; locks = l.env.Registry.All() {
		for _, k := range locks {
			if k.ShutDown() {
				n++
			}
		}
	}
	return n
}
