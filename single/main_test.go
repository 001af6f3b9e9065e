package single_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // they wait for the servers' clocks more than for the processor
	logging.Disable()   // go-redis would log every refused connection
	goleak.VerifyTestMain(m)
}

// patience bounds what should happen at once; a starved machine needs a part of it.
const patience = 10 * time.Second

var (
	concurrently = locktest.Concurrently
	must         = locktest.Must
	newLane      = locktest.NewLane
	within       = locktest.Within
)

const (
	// short is a request's deadline, and long the least that a client with default settings takes instead.
	short = 100 * time.Millisecond
	long  = 3 * time.Second
)

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

// started starts a server, and makes a Master with its own connections.
func started(t *testing.T, opts ...redistest.Option) (*redistest.Server, *single.Master) {
	t.Helper()
	server := redistest.Start(t, opts...)
	return server, dial(t, server.URL())
}

// opened makes a Master with these options; it is closed with the test.
func opened(t *testing.T, opt *redis.Options, opts single.Options) *single.Master {
	t.Helper()
	m, err := single.Open(opt, opts)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() }) // which the test may have done
	return m
}

// direct makes a master with the library's own connections; conns idle connections are made in advance.
func direct(t *testing.T, opt *redis.Options, conns int) *single.Master {
	t.Helper()
	m, err := single.Open(opt, single.Options{})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	if !single.Direct(m) {
		t.Fatal("go-redis carries everything")
	}
	for single.IdleConnections(m) < conns {
		concurrently(conns, func(int) {
			_, err := m.Ask(t.Context(), inspect("key"))
			must(t, err)
		})
	}
	return m
}

// clocked makes a Master with a restart guard and a clock that only the test moves.
func clocked(t *testing.T, opt *redis.Options, guard time.Duration) (m *single.Master, pass func(time.Duration)) {
	t.Helper()
	clock := new(atomic.Int64)
	m = opened(t, opt, single.Options{
		RestartGuard: guard, Clock: func() time.Duration { return time.Duration(clock.Load()) },
	})
	return m, func(d time.Duration) { clock.Add(int64(d)) }
}

// clusterOf makes a server that is a whole Redis Cluster, and its client.
func clusterOf(t *testing.T) (*redistest.Server, *redis.ClusterClient) {
	t.Helper()
	server := clusterServer(t)
	return server, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
}

// clusterServer is a whole Redis Cluster.
func clusterServer(t *testing.T) *redistest.Server {
	t.Helper()
	server := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes"))
	must(t, server.Client().ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	redistest.Eventually(t, patience, func() bool {
		return server.Client().Set(t.Context(), "probe", "", time.Millisecond).Err() == nil
	}, "the cluster to serve its slots")
	return server
}

// masterKinds are the kinds of connections that use bundles.
func masterKinds() map[string]func(*testing.T, *redistest.Server) *single.Master {
	return map[string]func(*testing.T, *redistest.Server) *single.Master{
		"own connections": func(t *testing.T, s *redistest.Server) *single.Master {
			t.Helper()
			return direct(t, &redis.Options{Addr: s.Addr()}, 1)
		},
		"go-redis": func(t *testing.T, s *redistest.Server) *single.Master {
			t.Helper()
			return over(t, redis.NewClient(&redis.Options{Addr: s.Addr()}))
		},
	}
}

// ways are the masters over one server, by the kind of connection.
func ways(t *testing.T, addr string) map[string]*single.Master {
	t.Helper()
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": addr}, MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	return map[string]*single.Master{
		"Dial": dial(t, "redis://"+addr),
		"New":  over(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})),
		"Ring": over(t, ring),
	}
}

// ownAndThrough are masters that send the guard's questions on the library's own connections and on go-redis's.
func ownAndThrough(t *testing.T, addr string, guard time.Duration) map[string]*single.Master {
	t.Helper()
	through := func(context.Context, *redis.Conn) error { return nil }
	opts := single.Options{RestartGuard: guard}
	own, other := opened(t, &redis.Options{Addr: addr}, opts), opened(t, &redis.Options{Addr: addr, OnConnect: through},
		opts)
	if !single.Direct(own) || single.Direct(other) {
		t.Fatal("both go the same way")
	}
	return map[string]*single.Master{"own": own, "through go-redis": other}
}

// receiver receives the calls that have ended.
type receiver chan *lane.Call

func (r receiver) Ended(c *lane.Call) { r <- c }

// ask performs one request that must be answered.
func ask(tb testing.TB, m *single.Master, r single.Request) single.Reply {
	tb.Helper()
	reply, err := m.Ask(tb.Context(), r)
	must(tb, err)
	return reply
}

// grants sends a request that must be granted.
func grants(tb testing.TB, m *single.Master, r single.Request) single.Reply {
	tb.Helper()
	got := ask(tb, m, r)
	if got.Outcome != single.Granted {
		tb.Errorf("operation %d of %q on %q: %+v, want granted", r.Op, r.Owner, r.Keys, got)
	}
	return got
}

// refuses sends a request that must be refused because of this holder; "" if it is none.
func refuses(tb testing.TB, m *single.Master, holder string, r single.Request) single.Reply {
	tb.Helper()
	got := ask(tb, m, r)
	if got.Outcome != single.Refused || got.Holder != holder {
		tb.Errorf("operation %d of %q on %q: %+v, want refused because of %q", r.Op, r.Owner, r.Keys, got, holder)
	}
	return got
}

// batchOf makes calls of requests.
func batchOf(requests ...single.Request) []*single.Call {
	batch := make([]*single.Call, len(requests))
	for i := range requests {
		batch[i] = &single.Call{Request: &requests[i]}
	}
	return batch
}

// send sends requests as one batch that ends after d.
func send(t *testing.T, m *single.Master, d time.Duration, requests ...single.Request) []*single.Call {
	t.Helper()
	batch := batchOf(requests...)
	m.Do(within(t, d), batch)
	return batch
}

// won reports whether a call was granted.
func won(c *single.Call) bool { return c.Err == nil && c.Reply.Outcome == single.Granted }

// about reports whether got is ttl or a little less, because time has passed. Holds of a shared key live a
// millisecond longer.
func about(got, ttl time.Duration) bool { return got <= ttl+time.Millisecond && got > ttl-patience }
