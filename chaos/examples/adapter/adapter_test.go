// Package adapter_test is a whole adapter: a small lock as a team may have one, made known to the harness, and tested.
package adapter_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/chaostest"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// TestMain lets this program be started as a client, and silences the logs of other packages about broken connections.
func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	logging.Disable()
	workload.Main(ours{})
	m.Run()
}

// Clients share masters; each of two sees another majority. In dying-clients some are processes that are stopped and
// killed.
func TestOurLockPassesBridgesAndDyingClients(t *testing.T) {
	const ttl = 4 * time.Second
	for _, scenario := range []string{"bridge", "dying-clients"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel() // a run mostly waits
			chaostest.Run(t, chaos.Config{
				Subject: ours{}, Backend: "process", Scenario: scenario, Duration: 8 * time.Second, TTL: ttl,
				// where a master does not answer, this lock leaves the key to its ttl
				Limits: chaos.Limits{Orphan: ttl},
			})
		})
	}
}

// ours is the harness's adapter for the lock.
type ours struct{}

func (ours) Name() string { return "ours" }

func (ours) Supports(kind history.Kind) error {
	if kind != history.Plain {
		return fmt.Errorf("%w: only plain locks", workload.ErrUnsupported)
	}
	return nil
}

func (ours) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	l := &locker{}
	for _, addr := range addrs {
		l.masters = append(l.masters,
			redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true}))
	}
	return l, nil
}

type locker struct{ masters []*redis.Client }

func (l *locker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		h := &hold{l: l, key: r.Key, owner: rand.Text(), until: time.Now().Add(r.TTL - r.TTL/100 - 2*time.Millisecond)}
		if l.everywhere(r.TTL/20, func(ctx context.Context, m *redis.Client) bool {
			return m.SetNX(ctx, h.key, h.owner, r.TTL).Val()
		}) && h.Remaining() > 0 {
			return h, nil
		}
		_ = h.Release(context.WithoutCancel(ctx)) // locks of a lost round
		if r.Once {
			return nil, workload.ErrHeld
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(time.Now().UnixNano()%50) * time.Millisecond):
		}
	}
}

// everywhere asks all masters, waits for all, and reports whether a majority says yes.
func (l *locker) everywhere(within time.Duration, ask func(context.Context, *redis.Client) bool) bool {
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

func (l *locker) Close(context.Context) error {
	var err error
	for _, m := range l.masters {
		err = errors.Join(err, m.Close())
	}
	return err
}

type hold struct {
	l          *locker
	key, owner string
	until      time.Time
}

func (h *hold) Owner() string                               { return h.owner }
func (h *hold) Token() uint64                               { return 0 }
func (h *hold) Remaining() time.Duration                    { return time.Until(h.until) }
func (h *hold) Done() <-chan struct{}                       { return nil }
func (h *hold) Extend(context.Context, time.Duration) error { return workload.ErrUnsupported }

var release = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

func (h *hold) Release(context.Context) error {
	if !h.l.everywhere(500*time.Millisecond, func(ctx context.Context, m *redis.Client) bool {
		n, err := release.Run(ctx, m, []string{h.key}, h.owner).Int()
		return n == 1 && err == nil
	}) {
		return workload.ErrLost
	}
	return nil
}
