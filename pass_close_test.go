package redlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-624411e5/redlock"
)

// stalled is a context with a Done that does not return until the channel is closed. A waiter that uses this context
// does not run until then.
type stalled struct {
	context.Context
	until chan struct{}
}

func (c stalled) Done() <-chan struct{} {
	<-c.until
	return c.Context.Done()
}

// Close refuses all waiters, including a waiter that has not run since. A lock that is released then goes back to the
// masters.
func TestALockIsNotPassedOnOnceCloseHasBegun(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		l := masters.locker(t, redlock.Options{})
		holder := acquire(t, l, passTTL)
		q := &line{t: t, l: l}
		q.add(passTTL)
		busy := make(chan struct{})
		release := sync.OnceFunc(func() { close(busy) })
		t.Cleanup(release)
		behind := wait(t, stalled{t.Context(), busy}, l, key, passTTL)
		synctest.Wait()
		must(t, holder.Release(t.Context()))
		first := q.next(0)

		closed := make(chan error, 1)
		go func() { closed <- l.Close(t.Context()) }()
		synctest.Wait()
		must(t, first.Release(t.Context()))
		synctest.Wait()
		if n := masters.holders(""); n != 0 {
			t.Errorf("%d masters have the key of a Locker that is being closed, after its last release", n)
		}
		release()
		is(t, behind.fail(t), redlock.ErrClosed)
		must(t, <-closed)
	})
}
