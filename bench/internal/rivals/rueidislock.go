package rivals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// rueidislockSubject is rueidislock on the first master with a majority of one key: its majority is over keys of one
// server or cluster, not over servers. It renews by itself. Only the end of a context tells the holder that the lock is
// lost.
type rueidislockSubject struct{}

// Rueidislock is rueidislock on the first master alone.
func Rueidislock() workload.Subject { return rueidislockSubject{} }

// Name implements workload.Subject.
func (rueidislockSubject) Name() string { return "rueidislock" }

// RenewsHolds implements workload.Renewer.
func (rueidislockSubject) RenewsHolds() {}

// Supports implements workload.Subject.
func (rueidislockSubject) Supports(kind history.Kind) error { return plainOnly("rueidislock", kind) }

// Open implements workload.Subject. All addresses but the first are ignored.
func (rueidislockSubject) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	if len(addrs) == 0 {
		return nil, errors.New("rivals: rueidislock needs a master")
	}
	return &rueidislockClient{addr: addrs[0], lockers: make(map[time.Duration]rueidislock.Locker)}, nil
}

type rueidislockClient struct {
	addr string

	mu      sync.Mutex
	lockers map[time.Duration]rueidislock.Locker // by ttl, because a locker has one
}

func (c *rueidislockClient) locker(ttl time.Duration) (rueidislock.Locker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lockers[ttl]; l != nil {
		return l, nil
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{c.addr}, ForceSingleClient: true},
		KeyPrefix:    "redlock-chaos", KeyValidity: ttl, KeyMajority: 1, NoLoopTracking: true,
	})
	if err == nil {
		c.lockers[ttl] = l
	}
	return l, err
}

// Acquire implements workload.Locker. The lock's context is a child of the context passed to rueidislock, which must
// outlive the wait.
func (c *rueidislockClient) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if err := Rueidislock().Supports(r.Kind); err != nil {
		return nil, err
	}
	l, err := c.locker(r.TTL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	ask := l.WithContext
	if r.Once {
		ask = l.TryWithContext
	}
	lock, release, err := ask(held, r.Key)
	waits := stop()
	switch {
	case err == nil && waits:
		return &rueidislockHold{lock, release, cancel, time.Now().Add(unbounded)}, nil
	case err == nil:
		release()
		return nil, ctx.Err()
	}
	cancel()
	if errors.Is(err, rueidislock.ErrNotLocked) {
		err = fmt.Errorf("%w: %w", workload.ErrHeld, err)
	} else {
		err = fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
	return nil, errors.Join(ctx.Err(), err)
}

// Close implements workload.Locker.
func (c *rueidislockClient) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lockers {
		l.Close()
	}
	return nil
}

type rueidislockHold struct {
	lock    context.Context //nolint:containedctx // it is the lock
	release context.CancelFunc
	cancel  context.CancelFunc
	until   time.Time // far away and fixed: a change would look like an extension
}

// Owner implements workload.Hold: the library does not reveal the value of its keys.
func (h *rueidislockHold) Owner() string { return "" }

// Token implements workload.Hold.
func (h *rueidislockHold) Token() uint64 { return 0 }

// unbounded is the remaining time of a hold without a bound: its holder acts until its context ends.
const unbounded = time.Hour

// Remaining implements workload.Hold.
func (h *rueidislockHold) Remaining() time.Duration {
	if h.lock.Err() != nil {
		return 0
	}
	return time.Until(h.until)
}

// Done implements workload.Hold.
func (h *rueidislockHold) Done() <-chan struct{} { return h.lock.Done() }

// Extend implements workload.Hold: the library extends by itself.
func (h *rueidislockHold) Extend(context.Context, time.Duration) error {
	if h.lock.Err() != nil {
		return workload.ErrLost
	}
	return nil
}

// Release implements workload.Hold. The library does not say whether it succeeded.
func (h *rueidislockHold) Release(ctx context.Context) error {
	defer h.cancel()
	lost := h.lock.Err() != nil
	released := make(chan struct{})
	go func() { h.release(); close(released) }()
	select {
	case <-released:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, ctx.Err())
	}
	if lost {
		return workload.ErrLost
	}
	return nil
}
