package rivals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Redislock is bsm/redislock on the first master alone, over go-redis with its default settings. It waits with the
// library's own retry strategy, as its README shows, and polls as often as naive does. An error that is not a refusal
// ends the library's wait; a caller that still wants the lock calls it again.
func Redislock() workload.Subject {
	return overRedis{rival{name: "redislock"}, func(masters []*redis.Options) *client {
		rdb := redis.NewClient(masters[0])
		locks := redislock.New(rdb)
		c := &client{close: closing(rdb), pause: func() time.Duration { return pollEvery }}
		c.try = func(ctx context.Context, r workload.Request) (workload.Hold, error) {
			options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(3 * pollEvery / 2)}
			if r.Once {
				options = nil
			}
			begin := time.Now()
			lock, err := locks.Obtain(ctx, r.Key, r.TTL, options)
			if err != nil {
				return nil, told(err, redislock.ErrNotObtained, workload.ErrHeld)
			}
			return c.obtained(ctx, r, lock, begin)
		}
		return c
	}}
}

// obtained makes the hold of a lock. The library waits within one call, so only the library knows when the successful
// try began. All that it reports about the lock is the remaining ttl.
func (c *client) obtained(ctx context.Context, r workload.Request, lock *redislock.Lock, begin time.Time) (
	workload.Hold, error,
) {
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
	return c.keep(r, &hold{
		owner: lock.Token(), until: until,
		more: func(ctx context.Context, ttl time.Duration) (time.Time, error) {
			begin := time.Now()
			return begin.Add(ttl), told(lock.Refresh(ctx, ttl, nil), redislock.ErrNotObtained, workload.ErrLost)
		},
		give: func(ctx context.Context) error {
			return told(lock.Release(ctx), redislock.ErrLockNotHeld, workload.ErrLost)
		},
	}), nil
}

// told translates an error of the library: refusal becomes means, and all others come from its one server.
func told(err, refusal, means error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, refusal):
		return fmt.Errorf("%w: %w", means, err)
	default:
		return noQuorum(err)
	}
}
