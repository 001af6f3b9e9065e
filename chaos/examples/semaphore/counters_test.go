package semaphore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// counters is a semaphore that lets each master give the full number of permits, and takes a majority of masters for
// one. Five masters with two permits each have ten to give, so three holders take nine.
type counters struct{}

func (counters) Name() string { return "permits-counted-on-masters" }

func (counters) Supports(kind history.Kind) error { return onlyShared(kind) }

func (counters) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	l := &counting{}
	for _, addr := range addrs {
		l.masters = append(l.masters,
			redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true}))
	}
	return l, nil
}

type counting struct{ masters []*redis.Client }

// take gives a permit where fewer than that many are given: a sorted set has each holder with the end of its time.
var take = redis.NewScript(`local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`)

func (l *counting) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		p := &counterPermit{
			l: l, key: r.Key, owner: rand.Text(), until: time.Now().Add(r.TTL - r.TTL/100 - 2*time.Millisecond),
		}
		got := l.majority(r.TTL/20, func(ctx context.Context, m *redis.Client) bool {
			n, err := take.Run(ctx, m, []string{p.key}, p.owner, permits, r.TTL.Milliseconds()).Int()
			return n == 1 && err == nil
		})
		if got && p.Remaining() > 0 {
			return p, nil
		}
		_ = p.Release(context.WithoutCancel(ctx)) // permits of a lost round
		if r.Once {
			return nil, workload.ErrHeld
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(time.Now().UnixNano()%20) * time.Millisecond):
		}
	}
}

// majority reports whether a majority says yes; it waits for all.
func (l *counting) majority(within time.Duration, ask func(context.Context, *redis.Client) bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	votes, yes := make(chan bool, len(l.masters)), 0
	for _, m := range l.masters {
		go func() { votes <- ask(ctx, m) }()
	}
	for range l.masters {
		if <-votes {
			yes++
		}
	}
	return yes > len(l.masters)/2
}

func (l *counting) Close(context.Context) error {
	var err error
	for _, m := range l.masters {
		err = errors.Join(err, m.Close())
	}
	return err
}

type counterPermit struct {
	l          *counting
	key, owner string
	until      time.Time
}

func (p *counterPermit) Owner() string                               { return p.owner }
func (p *counterPermit) Token() uint64                               { return 0 }
func (p *counterPermit) Remaining() time.Duration                    { return time.Until(p.until) }
func (p *counterPermit) Done() <-chan struct{}                       { return nil }
func (p *counterPermit) Extend(context.Context, time.Duration) error { return workload.ErrUnsupported }

func (p *counterPermit) Release(context.Context) error {
	p.l.majority(500*time.Millisecond, func(ctx context.Context, m *redis.Client) bool {
		return m.ZRem(ctx, p.key, p.owner).Err() == nil
	})
	return nil
}
