package virtual_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/virtual"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// ours is a lock on one server, as many programs have one.
func ours(masters []*redis.Options) virtual.Client {
	masters[0].ContextTimeoutEnabled, masters[0].MaxRetries = true, -1
	rdb := redis.NewClient(masters[0])
	release := redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	return virtual.Client{
		Close: rdb.Close,
		Try: func(ctx context.Context, key string, ttl time.Duration) (*virtual.Held, error) {
			owner, began := rand.Text(), time.Now()
			if ok, err := rdb.SetNX(ctx, key, owner, ttl).Result(); err != nil {
				return nil, err
			} else if !ok {
				return nil, workload.ErrHeld
			}
			return &virtual.Held{
				Owner: owner, Until: began.Add(ttl - ttl/100 - 2*time.Millisecond), // clocks differ a little
				Release: func(ctx context.Context) error {
					n, err := release.Run(ctx, rdb, []string{key}, owner).Int()
					if err == nil && n == 0 {
						err = workload.ErrLost
					}
					return err
				},
			}, nil
		},
	}
}

func TestOurLock(t *testing.T) {
	virtual.Test(t, virtual.Lock("ours", ours), virtual.Options{Masters: 1, Schedules: schedules(100)})
}
