package redlock

import (
	"context"
	"errors"
	"fmt"
)

// Close ends the Locker as a server is shut down: new acquisitions and waiting ones fail with [ErrClosed] and leave the
// masters' queues, then it waits until every lock has been released or has lapsed and every master has confirmed, or the
// keys' ttls are over.
// When ctx is done first, the Contexts of the locks still held are cancelled, nothing is renewed or asked any more, and
// the error says what was left on the masters to lapse by itself. Close takes no longer than ctx; what is under way then
// ends by its own timeout. Otherwise no goroutine of the Locker is left when it returns, except one inside a Master or an
// Observer that does not return.
//
// Close again waits for the first to return, and returns nil: what was wrong, the first has said. If its own ctx is done
// before, it returns ctx's error, and shortens nothing.
func (l *Locker) Close(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	if ctx == nil {
		return invalid("nil context")
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.awaitClose(ctx)
	}
	l.closed = true
	defer close(l.ended)
	close(l.closing)
	l.noteEmptyLocked()
	l.mu.Unlock()

	err := l.drain(ctx)
	l.schedule.Close()
	l.janitor.Close()
	for _, lane := range l.lanes {
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
		return fmt.Errorf("redlock: close: waiting for another call of Close: %w", ended(ctx))
	}
}

// awaitGoroutines waits for what is under way: requests, which end by their deadlines, and what the Observer has yet to be
// told. A Master or an Observer that does not return from one call is not waited for any longer than that, and nothing is any
// longer than ctx.
func (l *Locker) awaitGoroutines(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		l.subscription.Close()
		l.checks.Wait()
		_ = l.fanOut.Wait() // lanes return no errors
		close(ended)
	}()
	patience, enough := context.WithCancel(ctx)
	defer enough()
	defer l.clock.AfterFunc(2*max(l.opts.RequestTimeout, maxRequestTimeout), enough).Stop()
	select {
	case <-ended:
	case <-patience.Done():
	}
	if l.observer == nil {
		return nil
	}
	return l.observer.close(ctx, func() (<-chan struct{}, func()) {
		patience, enough := context.WithCancel(ctx)
		timer := l.clock.AfterFunc(2*max(l.opts.RequestTimeout, maxRequestTimeout), enough)
		return patience.Done(), func() { timer.Stop(); enough() }
	})
}

// drain waits for the locks and the janitor, and says what is left when ctx does not let it.
func (l *Locker) drain(ctx context.Context) error {
	select {
	case <-l.empty:
	case <-ctx.Done():
	}
	left := l.abandonAll()
	pending := l.janitor.Drain(ctx)
	if left == 0 && pending == 0 {
		return nil
	}
	return fmt.Errorf("redlock: close: %d locks not released and %d keys not confirmed removed lapse by their ttl: %w",
		left, pending, ended(ctx))
}

// abandonAll ends the locks that are left without asking the masters, and returns how many were held.
func (l *Locker) abandonAll() int {
	l.mu.Lock()
	var locks []*Lock
	for k := l.first; k != nil; k = k.next {
		locks = append(locks, k)
	}
	l.mu.Unlock()
	for _, k := range locks {
		k.abandon()
	}
	return len(locks)
}

// enroll notes that k may have keys on masters from now on.
func (l *Locker) enroll(k *Lock) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if k.next = l.first; k.next != nil {
		k.next.prev = k
	}
	l.first = k
	return nil
}

// forget notes that k has no keys left, or only such as the janitor looks after.
func (l *Locker) forget(k *Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case k.prev != nil:
		k.prev.next = k.next
	case l.first == k:
		l.first = k.next
	default:
		return // it was forgotten before
	}
	if k.next != nil {
		k.next.prev = k.prev
	}
	k.next, k.prev = nil, nil
	l.noteEmptyLocked()
}

// notBusy counts one less that Close waits for: an acquisition, or a departure.
func (l *Locker) notBusy() {
	if l.busy.Add(-1) > 0 {
		return
	}
	select {
	case <-l.closing:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.noteEmptyLocked()
	default:
	}
}

// noteEmptyLocked tells Close that nothing is left to wait for, if that is so.
func (l *Locker) noteEmptyLocked() {
	if !l.closed || l.first != nil || l.busy.Load() > 0 {
		return
	}
	select {
	case <-l.empty:
	default:
		close(l.empty)
	}
}
