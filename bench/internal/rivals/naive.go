package rivals

import (
	"context"
	"crypto/rand"
	"errors"
	jitter "math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Naive is the lock in Redis's own documentation of SET, on the first master alone: SET NX PX with a random value, and
// a script that deletes the key while it has that value. It polls, renews by the same kind of script, and never cleans
// up. It uses go-redis with its default settings.
func Naive() workload.Subject {
	return overRedis{rival{name: "naive"}, func(masters []*redis.Options) *client {
		rdb := redis.NewClient(masters[0])
		c := &client{close: closing(rdb), pause: func() time.Duration { return pollEvery + jitter.N(pollEvery) }}
		c.try = func(ctx context.Context, r workload.Request) (workload.Hold, error) {
			l := &naiveLock{rdb, r.Key, rand.Text()}
			begin := time.Now()
			err := rdb.SetArgs(ctx, r.Key, l.owner, redis.SetArgs{Mode: "NX", TTL: r.TTL}).Err()
			switch {
			case errors.Is(err, redis.Nil):
				return nil, workload.ErrHeld
			case err != nil: // its one server is its majority
				return nil, noQuorum(err)
			}
			return c.keep(r, &hold{owner: l.owner, until: begin.Add(r.TTL), more: l.extend, give: l.release}), nil
		}
		return c
	}}
}

var (
	compareAndDelete = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	compareAndExpire = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
)

// Between two attempts Naive waits for pollEvery to twice that. That is short compared with redsync's 50 to 250 ms, so
// polling does not make it slow. The time is random, so contenders take turns.
const pollEvery = 10 * time.Millisecond

// naiveLock is a key that has our value.
type naiveLock struct {
	rdb        *redis.Client
	key, owner string
}

func (l *naiveLock) extend(ctx context.Context, ttl time.Duration) (time.Time, error) {
	begin := time.Now()
	return begin.Add(ttl), l.run(ctx, compareAndExpire, ttl.Milliseconds())
}

func (l *naiveLock) release(ctx context.Context) error { return l.run(ctx, compareAndDelete) }

// run runs a script that acts on our key only while it has our value, and then answers 1.
func (l *naiveLock) run(ctx context.Context, script *redis.Script, args ...any) error {
	n, err := script.Run(ctx, l.rdb, []string{l.key}, append([]any{l.owner}, args...)...).Int()
	switch {
	case err != nil:
		return noQuorum(err)
	case n != 1:
		return workload.ErrLost
	default:
		return nil
	}
}
