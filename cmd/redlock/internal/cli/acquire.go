package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock"
)

const (
	// forever is the default of -wait.
	forever = time.Duration(1<<63 - 1)
	// closeTimeout bounds how long masters that do not confirm a release delay the end, where it matters to others;
	// what they keep lapses by its ttl.
	closeTimeout = 2 * time.Second
	// confirmedTimeout does where a quorum has confirmed, so that a key on one of the others is in nobody's way.
	confirmedTimeout = 200 * time.Millisecond
	// attemptTimeout does after an attempt that has failed, or that a signal has ended.
	attemptTimeout = 500 * time.Millisecond
)

// acquire waits for the lock; a signal that is meant to end a program ends the wait.
func (r *runner) acquire(ctx context.Context, locker *redlock.Locker) (*redlock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan os.Signal)
	go func() { watched <- r.firstEnd(ctx, cancel) }()
	lock, err := r.attempts(ctx, locker)
	cancel()
	ended := <-watched
	if ended == nil {
		return lock, err
	}
	stopped := fmt.Errorf("%v while waiting for the lock on %q", ended, r.key)
	if err == nil { // the lock and the signal at once: the command is not started any more
		stopped = also(stopped, lock.Release(context.WithoutCancel(ctx)))
	}
	return nil, &statusError{status: statusSignal + number(ended), err: stopped, signal: ended}
}

// firstEnd calls cancel at the first signal which ends a wait, and returns it; nil if ctx ends before.
func (r *runner) firstEnd(ctx context.Context, cancel context.CancelFunc) os.Signal {
	select {
	case sig := <-r.signals:
		cancel()
		return sig
	case <-ctx.Done():
		return nil
	}
}

// attempts makes the first attempt and, unless it is to be the only one, waits.
func (r *runner) attempts(ctx context.Context, locker *redlock.Locker) (*redlock.Lock, error) {
	options := []redlock.Option{redlock.AutoRenew()}
	if r.fenced {
		options = append(options, redlock.Fenced())
	}
	if r.maxHold > 0 {
		options = append(options, redlock.MaxHold(r.maxHold))
	}
	began := time.Now()
	lock, err := locker.TryAcquire(ctx, r.key, r.ttl, options...)
	switch {
	case err == nil:
		return lock, nil
	case r.try || r.wait == 0 || !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrExpired):
		return nil, err
	}
	first := err
	if !r.quiet {
		r.notes.printf("redlock: waiting: %v", bare{err})
	}
	if r.wait < forever {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, began.Add(r.wait))
		defer stop()
	}
	lock, err = locker.Acquire(ctx, r.key, r.ttl, options...)
	return lock, r.gaveUp(err, first)
}

// gaveUp puts the end of -wait into the command's words: what the last attempt met is what the reader needs, or the first one
// if the wait was over before another had ended.
func (r *runner) gaveUp(err, first error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if last, ok := errors.AsType[*redlock.QuorumError](err); ok {
		return fmt.Errorf("gave up after %v: %w", r.wait, bare{last})
	}
	return fmt.Errorf("gave up after %v: %w", r.wait, bare{first})
}

// closeSoon gives masters that have not confirmed yet a moment; what they keep lapses by its ttl.
func closeSoon(l *redlock.Locker, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = l.Close(ctx) // says which keys lapse, which nobody can do anything about
}

func number(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return int(n)
	}
	return 2
}

func isNotHeld(err error) bool { return errors.Is(err, redlock.ErrNotHeld) }
