package single_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // they wait for the servers' clocks more than for the processor
	redis.SetLogger(quiet{})
	goleak.VerifyTestMain(m)
}

// quiet stops go-redis from logging every refused connection.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// patience bounds what should happen at once; a starved machine needs a part of it.
const patience = 10 * time.Second

// dial makes a Master with its own connections; it is closed with the test.
func dial(tb testing.TB, url string) *single.Master {
	tb.Helper()
	m, err := single.Dial(url, single.Options{})
	must(tb, err)
	tb.Cleanup(func() { must(tb, m.Close()) })
	return m
}

// over makes a Master over a client that is closed with the test.
func over(tb testing.TB, client redis.UniversalClient) *single.Master {
	tb.Helper()
	m, err := single.New(client, single.Options{})
	must(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	return m
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// ask performs one request that must be answered.
func ask(tb testing.TB, m *single.Master, r single.Request) single.Reply {
	tb.Helper()
	reply, err := m.Ask(tb.Context(), r)
	must(tb, err)
	return reply
}

// acquire, extend and release are requests for one plain key.
func acquire(key, owner string, ttl time.Duration) single.Request {
	return single.Request{Op: single.Acquire, Keys: []string{key}, Owner: owner, TTL: ttl}
}

func extend(key, owner string, ttl time.Duration, repair bool) single.Request {
	return single.Request{Op: single.Extend, Keys: []string{key}, Owner: owner, TTL: ttl, Repair: repair}
}

func release(key, owner string) single.Request {
	return single.Request{Op: single.Release, Keys: []string{key}, Owner: owner}
}

func inspect(key string) single.Request {
	return single.Request{Op: single.Inspect, Keys: []string{key}}
}

// value reads a string key; "" when it is not there.
func value(tb testing.TB, s *redistest.Server, key string) string {
	tb.Helper()
	got, err := s.Client().Get(tb.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return got
}

// life reads how long a key will live; negative when it is not there or never expires.
func life(tb testing.TB, s *redistest.Server, key string) time.Duration {
	tb.Helper()
	got, err := s.Client().PTTL(tb.Context(), key).Result()
	must(tb, err)
	return got
}

// about reports whether got is ttl or a little less, because time has passed. Holds of a shared key live a
// millisecond longer.
func about(got, ttl time.Duration) bool { return got <= ttl+time.Millisecond && got > ttl-patience }

// within returns a context with this deadline that ends with the test.
func within(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

// receiver receives the calls that have ended.
type receiver chan *lane.Call

func (r receiver) Ended(c *lane.Call) { r <- c }

// newLane makes a lane that is closed with the test; its goroutines have ended then.
func newLane(tb testing.TB, master lane.Master) *lane.Lane {
	tb.Helper()
	var group errgroup.Group
	queue := lane.New(master, group.Go, schedule.AfterFunc)
	tb.Cleanup(func() {
		queue.Close()
		must(tb, group.Wait())
	})
	return queue
}
