package rivals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// redislockSubject is bsm/redislock on the first master, over go-redis with its default settings. It waits with the
// library's own retry strategy, as its README shows, and polls as often as naive does.
type redislockSubject struct{}

// Redislock is bsm/redislock on the first master alone.
func Redislock() workload.Subject { return redislockSubject{} }

// Name implements workload.Subject.
func (redislockSubject) Name() string { return "redislock" }

// RenewsHolds implements workload.Renewer.
func (redislockSubject) RenewsHolds() {}

// Supports implements workload.Subject.
func (redislockSubject) Supports(kind history.Kind) error { return plainOnly("redislock", kind) }

// Open implements workload.Subject. All addresses but the first are ignored.
func (redislockSubject) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	if len(addrs) == 0 {
		return nil, errors.New("rivals: redislock needs a master")
	}
	rdb := redis.NewClient(&redis.Options{Addr: addrs[0]})
	return &redislockClient{client{connections: []io.Closer{rdb}}, redislock.New(rdb)}, nil
}

type redislockClient struct {
	client
	locks *redislock.Client
}

// Acquire implements workload.Locker. An error that is not a refusal ends the library's wait; a caller that still wants
// the lock calls it again.
func (c *redislockClient) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if err := Redislock().Supports(r.Kind); err != nil {
		return nil, err
	}
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(3 * pollEvery / 2)}
	if r.Once {
		options = nil
	}
	for {
		begin := time.Now()
		lock, err := c.locks.Obtain(ctx, r.Key, r.TTL, options)
		if err == nil {
			// The library waits within this one call. Only the library knows when the successful try began. The server
			// reports the time left.
			return c.obtained(ctx, r, lock, begin)
		}
		if r.Once || ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), unobtained(err))
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// obtained asks the lock for its remaining ttl, which is all that the library reports about it.
func (c *redislockClient) obtained(ctx context.Context, r workload.Request, lock *redislock.Lock,
	begin time.Time,
) (workload.Hold, error) {
	until := begin.Add(r.TTL)
	if !r.Once {
		asked := time.Now()
		left, err := lock.TTL(ctx)
		if err != nil || left <= 0 {
			// The lock is not used; release it as a careful user would.
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.TTL)
			defer cancel()
			return nil, errors.Join(workload.ErrExpired, err, lock.Release(bounded))
		}
		until = asked.Add(left)
	}
	return c.keep(r, &redislockLease{lock}, lock.Token(), until), nil
}

func unobtained(err error) error {
	if errors.Is(err, redislock.ErrNotObtained) {
		return fmt.Errorf("%w: %w", workload.ErrHeld, err)
	}
	return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err) // its one server is its majority
}

type redislockLease struct{ lock *redislock.Lock }

func (l *redislockLease) extend(ctx context.Context, ttl time.Duration) (time.Time, error) {
	begin := time.Now()
	return begin.Add(ttl), l.told(l.lock.Refresh(ctx, ttl, nil), redislock.ErrNotObtained)
}

func (l *redislockLease) release(ctx context.Context) error {
	return l.told(l.lock.Release(ctx), redislock.ErrLockNotHeld)
}

func (l *redislockLease) told(err, gone error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gone):
		return fmt.Errorf("%w: %w", workload.ErrLost, err)
	default:
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
}
