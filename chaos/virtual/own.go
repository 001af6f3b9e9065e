package virtual

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Client is one client of a lock that [Lock] makes a subject.
type Client struct {
	// Try tries once to lock a key for a ttl. A key that another client has is workload.ErrHeld.
	Try func(ctx context.Context, key string, ttl time.Duration) (*Held, error)
	// Close ends the client; optional.
	Close func() error
}

// Held is a lock that is held.
type Held struct {
	// Owner is the value that the masters have for the key.
	Owner string
	// Until is when the holder stops to rely on the lock.
	Until time.Time
	// Release gives the key back. If it was not the holder's any more, that is workload.ErrLost.
	Release func(ctx context.Context) error
	// Extend asks for another ttl and returns the new Until; optional.
	Extend func(ctx context.Context, ttl time.Duration) (time.Time, error)
}

// Lock makes a subject of a lock that has plain locks and tries once. connect makes a client; it gets the options of
// go-redis for each master, with the dialer of the run. The subject tries again every 20 ms while its caller waits.
func Lock(name string, connect func(masters []*redis.Options) Client) workload.Subject {
	return ownLock{name, connect}
}

var errNothing = errors.New("virtual: Try returned neither a lock nor an error")

// again is how long the subject waits after a try that failed.
const again = 20 * time.Millisecond

// ownLock implements workload.Subject.
type ownLock struct {
	name    string
	connect func(masters []*redis.Options) Client
}

func (s ownLock) Name() string { return s.name }

func (s ownLock) Supports(kind history.Kind) error {
	if kind != history.Plain {
		return fmt.Errorf("%w: %s has plain locks only", workload.ErrUnsupported, s.name)
	}
	return nil
}

func (s ownLock) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured.
func (s ownLock) OpenSecured(_ context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	all, err := endpoint.AllOptions(masters)
	if err != nil {
		return nil, err
	}
	return ownClient{s.connect(all)}, nil
}

// ownClient implements workload.Locker.
type ownClient struct{ Client }

func (c ownClient) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		h, err := c.Try(ctx, r.Key, r.TTL)
		if err == nil && h == nil {
			return nil, errNothing
		}
		if err == nil {
			return &ownHold{*h}, nil
		}
		if !errors.Is(err, workload.ErrHeld) {
			err = fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
		}
		if r.Once {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(again):
		}
	}
}

func (c ownClient) Close(context.Context) error {
	if c.Client.Close == nil {
		return nil
	}
	return c.Client.Close()
}

// ownHold implements workload.Hold.
type ownHold struct{ h Held }

func (h *ownHold) Owner() string            { return h.h.Owner }
func (h *ownHold) Token() uint64            { return 0 }
func (h *ownHold) Remaining() time.Duration { return time.Until(h.h.Until) }
func (h *ownHold) Done() <-chan struct{}    { return nil }

// Extend implements workload.Hold. Only the holder's goroutine calls it.
func (h *ownHold) Extend(ctx context.Context, ttl time.Duration) error {
	if h.h.Extend == nil {
		return workload.ErrUnsupported
	}
	until, err := h.h.Extend(ctx, ttl)
	if err == nil {
		h.h.Until = until
	}
	return err
}

func (h *ownHold) Release(ctx context.Context) error { return h.h.Release(ctx) }
