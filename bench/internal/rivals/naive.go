package rivals

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	jitter "math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// naiveSubject is the lock in Redis's own documentation of SET: one server, SET NX PX with a random value, and a script
// that deletes the key while it has that value. It polls, renews by the same kind of script, and never cleans up.
type naiveSubject struct{}

// Naive is a lock on the first master alone, over go-redis with its default settings.
func Naive() workload.Subject { return naiveSubject{} }

// Name implements workload.Subject.
func (naiveSubject) Name() string { return "naive" }

// RenewsHolds implements workload.Renewer.
func (naiveSubject) RenewsHolds() {}

// Supports implements workload.Subject.
func (naiveSubject) Supports(kind history.Kind) error { return plainOnly("naive", kind) }

// Open implements workload.Subject. All addresses but the first are ignored.
func (naiveSubject) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	if len(addrs) == 0 {
		return nil, errors.New("rivals: naive needs a master")
	}
	rdb := redis.NewClient(&redis.Options{Addr: addrs[0]})
	return &naiveClient{client{connections: []io.Closer{rdb}}, rdb}, nil
}

type naiveClient struct {
	client
	rdb *redis.Client
}

var (
	compareAndDelete = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	compareAndExpire = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
)

// Between two attempts it waits for pollEvery to twice that. That is short compared with redsync's 50 to 250 ms, so
// polling does not make it slow. The time is random, so contenders take turns.
const pollEvery = 10 * time.Millisecond

// Acquire implements workload.Locker.
func (c *naiveClient) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if err := Naive().Supports(r.Kind); err != nil {
		return nil, err
	}
	for {
		h, err := c.try(ctx, r)
		if err == nil {
			return h, nil
		}
		if r.Once {
			return nil, err
		}
		timer := time.NewTimer(pollEvery + jitter.N(pollEvery))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
	}
}

func (c *naiveClient) try(ctx context.Context, r workload.Request) (workload.Hold, error) {
	rdb, owner, begin := c.rdb, rand.Text(), time.Now()
	err := rdb.SetArgs(ctx, r.Key, owner, redis.SetArgs{Mode: "NX", TTL: r.TTL}).Err()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, workload.ErrHeld
	case err != nil: // its one server is its majority
		return nil, fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
	return c.keep(r, &naiveLease{rdb, r.Key, owner}, owner, begin.Add(r.TTL)), nil
}

// naiveLease is a key that has our value.
type naiveLease struct {
	rdb        *redis.Client
	key, owner string
}

func (l *naiveLease) extend(ctx context.Context, ttl time.Duration) (time.Time, error) {
	begin := time.Now()
	return begin.Add(ttl), l.run(ctx, compareAndExpire, ttl.Milliseconds())
}

func (l *naiveLease) release(ctx context.Context) error { return l.run(ctx, compareAndDelete) }

// run runs a script that acts on our key only while it has our value, and then answers 1.
func (l *naiveLease) run(ctx context.Context, script *redis.Script, args ...any) error {
	n, err := script.Run(ctx, l.rdb, []string{l.key}, append([]any{l.owner}, args...)...).Int()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	case n != 1:
		return workload.ErrLost
	default:
		return nil
	}
}
