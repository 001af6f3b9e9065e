package rivals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// hold implements workload.Hold for a lock with a bound, which its holder can move.
type hold struct {
	owner string
	// more asks for ttl more and returns the new bound.
	more func(ctx context.Context, ttl time.Duration) (time.Time, error)
	give func(ctx context.Context) error
	stop context.CancelFunc // of the renewal

	extending sync.Mutex // one extension at a time: redsync's mutexes are not safe for concurrent use
	mu        sync.Mutex
	until     time.Time
}

// renewals is how many times in a ttl a hold is renewed. It leaves time for two failures in a row.
const renewals = 3

// keep renews the hold of a granted acquisition if the request asks for that.
func (c *client) keep(r workload.Request, h *hold) *hold {
	// Renewal outlives the call that acquired; Release ends it.
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	if r.Renew {
		c.renewals.Go(func() { h.renew(ctx, r.TTL) })
	}
	return h
}

// renew extends until the hold is lost or ctx is done. After another failure it tries again at the next interval.
func (h *hold) renew(ctx context.Context, ttl time.Duration) {
	tick := time.NewTicker(ttl / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.Extend(ctx, ttl); errors.Is(err, workload.ErrLost) {
			return
		}
	}
}

func (h *hold) Owner() string { return h.owner }

// Token implements workload.Hold: no rival with a bound has one.
func (h *hold) Token() uint64 { return 0 }

func (h *hold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

// Done implements workload.Hold: no rival with a bound has such a channel. Its users watch the time.
func (h *hold) Done() <-chan struct{} { return nil }

func (h *hold) Extend(ctx context.Context, ttl time.Duration) error {
	h.extending.Lock()
	defer h.extending.Unlock()
	until, err := h.more(ctx, ttl)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
	return nil
}

// Release implements workload.Hold. It ends the renewal without waiting for it: a late extension finds nothing to
// extend.
func (h *hold) Release(ctx context.Context) error {
	h.stop()
	return h.give(ctx)
}

// endless implements workload.Hold for a lock without a bound, which the library keeps until it is lost.
type endless struct {
	owner string
	token uint64
	done  <-chan struct{} // closes when the lock is lost; nil if the library does not tell
	until time.Time       // far away and fixed: a change would look like an extension
	// ask asks whether the lock is held; nil if done tells.
	ask func(ctx context.Context) error
	// give releases. The error of a lost lock matches subject.ErrNotHeld.
	give func(ctx context.Context) error
}

// forever is a bound that no run reaches.
func forever() time.Time { return time.Now().Add(time.Hour) }

func (h *endless) Owner() string { return h.owner }
func (h *endless) Token() uint64 { return h.token }

func (h *endless) Remaining() time.Duration {
	select {
	case <-h.done:
		return 0
	default:
		return time.Until(h.until)
	}
}

func (h *endless) Done() <-chan struct{} { return h.done }

// Extend implements workload.Hold: the library extends by itself.
func (h *endless) Extend(ctx context.Context, _ time.Duration) error {
	if h.Remaining() == 0 {
		return workload.ErrLost
	}
	if h.ask == nil {
		return nil
	}
	if err := h.ask(ctx); err != nil {
		return fmt.Errorf("%w: %w", workload.ErrLost, err)
	}
	return nil
}

func (h *endless) Release(ctx context.Context) error {
	err := h.give(ctx)
	switch {
	case errors.Is(err, subject.ErrNotHeld):
		return workload.ErrLost
	case err != nil:
		return noQuorum(err)
	}
	return nil
}
