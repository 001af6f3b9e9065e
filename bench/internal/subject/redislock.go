package subject

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockSingle is bsm/redislock on the first master only. It has no majority, so it is no rival: it shows the cost
// of a single master.
type redislockSingle struct{}

// RedislockSingle is bsm/redislock on one master.
func RedislockSingle() Subject { return redislockSingle{} }

func (redislockSingle) Name() string { return "redislock-single" }

// OneMaster marks a subject that scenarios about several masters leave out.
func (redislockSingle) OneMaster() {}

func (redislockSingle) Open(_ context.Context, addrs []string) (Client, error) {
	if len(addrs) == 0 {
		return nil, errors.New("subject: redislock-single: no address")
	}
	rdb := redis.NewClient(&redis.Options{Addr: addrs[0]})
	return &redislockClient{rdb: rdb, client: redislock.New(rdb)}, nil
}

type redislockClient struct {
	rdb    *redis.Client
	client *redislock.Client
}

// Acquire implements Client. It waits here instead of in a RetryStrategy, because redislock ends that after one ttl if
// the context has no deadline.
func (c *redislockClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	for {
		l, err := c.client.Obtain(ctx, key, ttl, nil)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, redislock.ErrNotObtained) {
			return nil, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

func (c *redislockClient) Close(context.Context) error { return c.rdb.Close() }
