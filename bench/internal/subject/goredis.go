package subject

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete removes a key only while it still has the owner's value.
const compareAndDelete = `
if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`

var dropScript = redis.NewScript(compareAndDelete)

// goRedisFanout is the hand-written Redlock over plain go-redis.
type goRedisFanout struct{}

// GoRedisFanout is Redlock over bare go-redis: a goroutine for every vote and an early return.
func GoRedisFanout() Subject { return goRedisFanout{} }

func (goRedisFanout) Name() string { return "goredis-fanout" }

func (goRedisFanout) Open(_ context.Context, addrs []string) (Client, error) {
	m := &majority{}
	for _, addr := range addrs {
		m.voters = append(m.voters, &goRedisVoter{redis.NewClient(&redis.Options{
			Addr: addr,
			// If the first answer of a SET NX were lost, its retry would report the key as taken by another.
			MaxRetries: -1,
			// Without this the request timeout is ignored once the bytes are sent.
			ContextTimeoutEnabled: true,
			// The pool has its default size. With a connection for each worker, 1,024 workers reached a tenth of the
			// rate.
		})})
	}
	return m, nil
}

type goRedisVoter struct{ rdb *redis.Client }

func (v *goRedisVoter) take(ctx context.Context, key, owner string, ttl time.Duration) (bool, error) {
	err := v.rdb.SetArgs(ctx, key, owner, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (v *goRedisVoter) drop(ctx context.Context, key, owner string) (bool, error) {
	n, err := dropScript.Run(ctx, v.rdb, []string{key}, owner).Int()
	return n == 1, err
}

func (v *goRedisVoter) close() { _ = v.rdb.Close() }
