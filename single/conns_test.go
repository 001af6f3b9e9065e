package single_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

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
		var wg sync.WaitGroup
		for range conns {
			wg.Go(func() {
				_, err := m.Ask(t.Context(), inspect("key"))
				must(t, err)
			})
		}
		wg.Wait()
	}
	return m
}

// Our own connections and go-redis's lead to the same replies to all requests.
func TestConnectionsOfOurOwnAnswerAsGoRedisDoes(t *testing.T) {
	servers := redistest.StartN(t, 2)
	through := over(t, redis.NewClient(&redis.Options{Addr: servers[0].Addr()}))
	own := direct(t, &redis.Options{Addr: servers[1].Addr()}, 1)
	random := rand.New(rand.NewPCG(1, 2))
	some := func(of ...string) string { return of[random.IntN(len(of))] }
	// a script that has to be sent again comes after the rest of its batch
	for _, m := range []*single.Master{through, own} {
		for _, r := range requests() {
			_, _ = m.Ask(t.Context(), r)
		}
	}
	for _, s := range servers {
		must(t, s.Client().FlushAll(t.Context()).Err())
	}
	outcomes := make(map[string]int)
	for range 100 {
		var batches [2][]*single.Call
		for range 1 + random.IntN(12) {
			r := requests()[random.IntN(12)]
			r.Keys, r.Owner = append([]string{some("a", "b", "c")}, r.Keys[1:]...), some("me", "you")
			r.TTL, r.Token = time.Hour, min(r.Token, 5)
			if r.Kind != single.Plain {
				r.Keys[0] = "shared"
			}
			for i, m := range []*single.Master{through, own} {
				r := r
				if random.IntN(2) == 0 {
					m.Prepare(&r)
				}
				batches[i] = append(batches[i], &single.Call{Request: &r})
			}
		}
		through.Do(t.Context(), batches[0])
		own.Do(t.Context(), batches[1])
		for i, a := range batches[0] {
			b := batches[1][i]
			a.Reply.TTL, b.Reply.TTL = a.Reply.TTL.Round(time.Hour), b.Reply.TTL.Round(time.Hour)
			// of several holders the last to end is named, which depends on milliseconds
			if a.Request.Kind != single.Plain {
				a.Reply.Holder, b.Reply.Holder = "", ""
			}
			if a.Reply != b.Reply || fmt.Sprint(a.Err) != fmt.Sprint(b.Err) || a.Sent != b.Sent ||
				a.Answered() != b.Answered() {
				t.Errorf("%+v: through go-redis %+v, %v, %t; directly %+v, %v, %t", *a.Request, a.Reply, a.Err, a.Sent,
					b.Reply, b.Err, b.Sent)
			}
			outcomes[fmt.Sprint(a.Reply.Outcome, a.Err != nil)]++
		}
	}
	if len(outcomes) < 3 {
		t.Errorf("no variety: %v", outcomes)
	}
}

func TestConnectionsAreReusedAndBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr(), PoolSize: 3}, 1)
	list := lister(t, server)
	before := connections(t, list)
	for range 20 {
		_, err := m.Ask(t.Context(), inspect("key"))
		must(t, err)
	}
	if now := connections(t, list); now != before || single.IdleConnections(m) != 1 {
		t.Errorf("%d connections, %d idle, for one request at a time; %d before", now, single.IdleConnections(m),
			before)
	}
	must(t, server.Pause())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			if _, err := m.Ask(ctx, inspect("key")); err == nil {
				t.Error("a paused master answered")
			}
		})
	}
	redistest.Eventually(t, patience, func() bool { return single.BusyConnections(m) == 3 },
		"all connections to be in use")
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	c := &single.Call{Request: new(inspect("key"))}
	if m.Do(ctx, []*single.Call{c}); !errors.Is(c.Err, redis.ErrPoolTimeout) || c.Sent {
		t.Errorf("the fourth request with three connections: %v, sent %t", c.Err, c.Sent)
	}
	wg.Wait()
	must(t, server.Resume())
	redistest.Eventually(t, patience, func() bool { return connections(t, list) < before },
		"connections that timed out to be closed")
}

// A connection is kept after any first batch. By default go-redis has a separate pool for pipelines, and a connection
// made there was closed after its batch. Under load, when every batch has several calls, each batch dialled.
func TestAConnectionWhoseFirstBatchIsAPipelineIsKept(t *testing.T) {
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 0)
	made := func() string {
		info, err := server.Client().Info(t.Context(), "stats").Result()
		must(t, err)
		count := single.InfoField(info, "total_connections_received")
		if count == "" {
			t.Fatalf("INFO does not say how many connections there were: %q", info)
		}
		return count
	}
	batch := func() {
		calls := make([]*single.Call, 5)
		for i := range calls {
			calls[i] = &single.Call{Request: new(inspect("key"))}
		}
		m.Do(t.Context(), calls)
		for _, c := range calls {
			must(t, c.Err)
		}
	}
	batch()
	before := made()
	for range 20 {
		batch()
	}
	if after := made(); after != before || single.IdleConnections(m) != 1 {
		t.Errorf("%s connections, %d of ours idle; after the first batch it were %s", after, single.IdleConnections(m),
			before)
	}
}

// A late reply must not be taken for the reply to the next request.
func TestALateReplyAnswersNoOtherRequest(t *testing.T) {
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 1)
	_, err := m.Ask(t.Context(), acquire("taken", "somebody", time.Minute))
	must(t, err)
	must(t, server.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	c := &single.Call{Request: new(acquire("free", "me", time.Minute))}
	m.Do(ctx, []*single.Call{c})
	next := &single.Call{Request: new(acquire("taken", "me", time.Minute))} // is under way when that reply comes
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Do(within(t, patience), []*single.Call{next})
	}()
	redistest.Eventually(t, patience, func() bool {
		return single.IdleConnections(m) == 0 && single.BusyConnections(m) > 0
	}, "the next request to be under way")
	must(t, server.Resume())
	if !c.Unsure() {
		t.Errorf("%+v: want a request that may have taken effect", c)
	}
	if <-ended; next.Err == nil && next.Reply.Outcome == single.Granted {
		t.Error("a taken key was granted by the reply to the request before")
	}
	for range 3 {
		reply, err := m.Ask(t.Context(), acquire("taken", "me", time.Minute))
		if err != nil || reply.Outcome != single.Refused || reply.Holder != "somebody" {
			t.Errorf("%+v, %v", reply, err)
		}
	}
}

// The same, if the late reply comes alone, so that no other bytes on the connection reveal it.
func TestALateReplyThatComesAloneAnswersNoRequest(t *testing.T) {
	late, next := make(chan struct{}), make(chan struct{})
	server := oddServer(t, func(_ int, words []string) string {
		switch {
		case words[0] == "set" && words[1] == "free":
			<-late
		case words[0] == "set":
			<-next
			return "$-1\r\n"
		case words[0] == "evalsha":
			return "*1\r\n:0\r\n"
		}
		return ""
	})
	m := dial(t, "redis://"+server.addr)
	first := &single.Call{Request: new(acquire("free", "me", time.Minute))}
	m.Do(within(t, short), []*single.Call{first})
	second := &single.Call{Request: new(acquire("taken", "me", time.Minute))}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Do(within(t, patience), []*single.Call{second})
	}()
	redistest.Eventually(t, patience, func() bool {
		return single.IdleConnections(m) == 0 && single.BusyConnections(m) > 0
	}, "the next request to be under way")
	close(late)
	select {
	case <-ended: // by that reply
	case <-time.After(short):
	}
	close(next)
	if <-ended; !first.Unsure() || second.Err != nil || second.Reply.Outcome != single.Refused {
		t.Errorf("the first, unsure %t; the second got %+v, %v, want that its key is taken", first.Unsure(),
			second.Reply, second.Err)
	}
}

func TestAConnectionThatBreaksInABatchAnswersTheCallsBeforeTheBreak(t *testing.T) {
	server := redistest.Start(t)
	bites := make(chan int, 1)
	m := direct(t,
		&redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &breaking{Conn: conn, bites: bites}, err
		}}, 1)
	var batch []*single.Call
	for i := range 10 {
		batch = append(batch, &single.Call{Request: new(acquire(fmt.Sprint("key", i), "me", time.Minute))})
	}
	bites <- 3 * len("+OK\r\n")
	m.Do(t.Context(), batch)
	for i, c := range batch {
		if granted := c.Err == nil && c.Reply.Outcome == single.Granted; granted != (i < 3) || !granted && !c.Unsure() {
			t.Errorf("request %d: %+v, %v, sent %t", i, c.Reply, c.Err, c.Sent)
		}
	}
	if single.IdleConnections(m) != 0 {
		t.Error("the broken connection was kept")
	}
	_, err := m.Ask(t.Context(), inspect("key0"))
	must(t, err)
}

// breaking is a connection that delivers the given number of bytes, and then no more.
type breaking struct {
	net.Conn
	bites chan int
	left  int
	told  bool
}

func (c *breaking) Read(b []byte) (int, error) {
	select {
	case c.left = <-c.bites:
		c.told = true
	default:
	}
	if !c.told {
		return c.Conn.Read(b)
	}
	if c.left == 0 {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// The replica at a master's address may be replaced by the master: the next connection finds out.
func TestAConnectionToAReplicaIsReplaced(t *testing.T) {
	servers := redistest.StartN(t, 2)
	m := direct(t, &redis.Options{Addr: servers[0].Addr()}, 1)
	host, port, err := net.SplitHostPort(servers[1].Addr())
	must(t, err)
	must(t, servers[0].Client().Do(t.Context(), "REPLICAOF", host, port).Err())
	_, err = m.Ask(t.Context(), acquire("key", "me", time.Minute))
	if !redis.HasErrorPrefix(err, "READONLY") || single.IdleConnections(m) != 0 {
		t.Errorf("%v, and %d connections kept", err, single.IdleConnections(m))
	}
	if single.Lasts(err) != single.Mendable || !single.IsElsewhere(err) {
		t.Errorf("%v at a given address passes", err)
	}
	theirs, err := single.New(servers[0].Client(), single.Options{})
	must(t, err)
	if _, err = theirs.Ask(t.Context(), acquire("key", "me", time.Minute)); single.Lasts(err) != single.Passing ||
		!single.IsElsewhere(err) {
		t.Errorf("%v from a user's client does not count as passing", err)
	}
}

func TestOldConnectionsAreReplaced(t *testing.T) {
	server := redistest.Start(t)
	var dials int
	dialer := func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	for name, opt := range map[string]redis.Options{
		"by age":  {ConnMaxLifetime: time.Nanosecond},
		"by rest": {ConnMaxIdleTime: time.Nanosecond},
	} {
		opt.Addr, opt.Dialer = server.Addr(), dialer
		m := direct(t, &opt, 1)
		dials = 0
		for range 3 {
			_, err := m.Ask(t.Context(), inspect("key"))
			must(t, err)
		}
		if dials != 3 {
			t.Errorf("%s: %d connections for 3 requests", name, dials)
		}
	}
}

func TestAClosedMasterClosesItsConnections(t *testing.T) {
	server := redistest.Start(t)
	list := lister(t, server)
	before := connections(t, list)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 2)
	must(t, m.Close())
	_, err := m.Ask(t.Context(), inspect("key"))
	if !errors.Is(err, redis.ErrClosed) {
		t.Errorf("%v", err)
	}
	redistest.Eventually(t, patience, func() bool { return connections(t, list) <= before }, "connections to be closed")
}

// Features that need go-redis for the life of a connection go through go-redis.
func TestOptionsThatNeedGoRedisUseGoRedis(t *testing.T) {
	server := redistest.Start(t)
	m, err := single.Open(&redis.Options{Addr: server.Addr(), Limiter: &limiter{}}, single.Options{})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	_, err = m.Ask(t.Context(), inspect("key"))
	if single.Direct(m) || !errors.Is(err, errLimited) {
		t.Errorf("the limiter was not asked: %v", err)
	}
}

var errLimited = errors.New("limited")

type limiter struct{}

func (*limiter) Allow() error         { return errLimited }
func (*limiter) ReportResult(_ error) {}

// A connection with a failed set-up is closed, even if the failure is a reply: it must not be used again.
func TestAWrongPasswordIsReportedEveryTime(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("right"))
	m, err := single.Open(&redis.Options{Addr: server.Addr(), Password: "wrong"}, single.Options{})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	for i := range 4 {
		_, err := m.Ask(t.Context(), acquire("key", "me", time.Minute))
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("request %d: %v, want WRONGPASS", i, err)
		}
	}
}
