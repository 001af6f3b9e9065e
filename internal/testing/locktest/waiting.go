package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Waiting is an Acquire under way.
type Waiting struct {
	Lock  *redlock.Lock
	Err   error
	At    time.Time
	Ended chan struct{} // closed when the fields above may be read
}

// Wait begins to acquire. The end of the test releases the lock, unless the test has released it before.
func Wait(tb testing.TB, ctx context.Context, locker *redlock.Locker, key string, ttl time.Duration,
	opts ...redlock.Option,
) *Waiting {
	tb.Helper()
	w := &Waiting{Ended: make(chan struct{})}
	go func() {
		defer close(w.Ended)
		w.Lock, w.Err = locker.Acquire(ctx, key, ttl, opts...)
		w.At = time.Now()
	}()
	return w
}

// Get waits for the lock, which has to come within promptly.
func (w *Waiting) Get(tb testing.TB) *redlock.Lock {
	tb.Helper()
	select {
	case <-w.Ended:
	case <-time.After(Promptly):
		tb.Fatalf("the waiter still waits after %v", Promptly)
	}
	if w.Err != nil {
		tb.Fatalf("the waiter got no lock: %v", w.Err)
	}
	return w.Lock
}

// Fail waits until the acquisition fails, and returns its error.
func (w *Waiting) Fail(tb testing.TB) error {
	tb.Helper()
	select {
	case <-w.Ended:
	case <-time.After(Promptly):
		tb.Fatalf("the waiter still waits after %v", Promptly)
	}
	if w.Err == nil {
		_ = w.Lock.Release(context.WithoutCancel(tb.Context()))
		tb.Fatal("the waiter got the lock")
	}
	return w.Err
}
