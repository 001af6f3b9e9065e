package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// Failures counts errors and keeps the first. The zero value is ready to use. It is safe for concurrent use.
type Failures struct {
	n     atomic.Int64
	first atomic.Pointer[error]
}

// Note counts an error; nil is none.
func (f *Failures) Note(err error) {
	if err == nil {
		return
	}
	kept := err // the parameter itself would be allocated for every call
	f.n.Add(1)
	f.first.CompareAndSwap(nil, &kept)
}

// Count is the number of errors.
func (f *Failures) Count() int64 { return f.n.Load() }

// First is the first error; nil if there was none.
func (f *Failures) First() error {
	if first := f.first.Load(); first != nil {
		return *first
	}
	return nil
}

// asker acquires and releases keys, and counts failures until its context ends.
type asker struct {
	Failures
	ttl time.Duration
}

// grant asks until it gets the key; it returns nil if ctx ends first.
func (a *asker) grant(ctx context.Context, client subject.Client, key string) subject.Handle {
	for ctx.Err() == nil {
		h, err := client.Acquire(ctx, key, a.ttl)
		if err == nil {
			return h
		}
		a.failed(ctx, err)
		Wait(ctx, failurePause)
	}
	return nil
}

// failed counts an error, unless it is the end of the measurement.
func (a *asker) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		a.Note(err)
	}
}

// giveBack releases a key that contenders want. The end of ctx must not cut off the last holder's release.
func (a *asker) giveBack(ctx context.Context, h subject.Handle) {
	if err := h.Release(context.WithoutCancel(ctx)); err != nil {
		a.failed(ctx, err)
	}
}

// If a subject ignores its context, its late operations end when the master answers again or with the client's own
// timeouts and retries. Half a minute is more than any client needs.
const drain = 30 * time.Second

// ended returns a channel that closes when all workers have ended.
func ended(workers *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	return done
}

// drained waits for the workers after a load. The error names them.
func drained(ended <-chan struct{}, workers string) error {
	if !waitFor(context.Background(), ended, drain) {
		return fmt.Errorf("load: %s had not ended %v after the load", workers, drain)
	}
	return nil
}

// Wait returns after d or when ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	if d > 0 {
		waitFor(ctx, nil, d)
	}
}

// waitFor reports whether done was closed within d.
func waitFor(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-time.After(d):
	}
	return false
}
