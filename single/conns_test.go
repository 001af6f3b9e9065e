package single_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

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

// A connection is kept after any first batch. By default go-redis has a separate pool for pipelines, and a connection
// made there was closed after its batch. Under load, when every batch has several calls, each batch dialled.
func TestConnectionsAreReusedAndBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	list := lister(t, server)
	for _, size := range []int{1, 5} {
		m := direct(t, &redis.Options{Addr: server.Addr(), PoolSize: 3}, 0)
		before := connections(t, list)
		for range 20 {
			for _, c := range send(t, m, patience, acquisitions("a", "b", "c", "d", "e")[:size]...) {
				must(t, c.Err)
			}
		}
		if now := connections(t, list); now != before+1 || single.IdleConnections(m) != 1 {
			t.Errorf("%d connections, %d idle, for one batch of %d at a time; %d before", now,
				single.IdleConnections(m), size, before)
		}
	}
	m := direct(t, &redis.Options{Addr: server.Addr(), PoolSize: 3}, 1)
	before := connections(t, list)
	must(t, server.Pause())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if send(t, m, long, inspect("key"))[0].Err == nil {
				t.Error("a paused master answered")
			}
		})
	}
	redistest.Eventually(t, patience, func() bool { return single.BusyConnections(m) == 3 },
		"all connections to be in use")
	if c := send(t, m, short, inspect("key"))[0]; !errors.Is(c.Err, redis.ErrPoolTimeout) || c.Sent {
		t.Errorf("the fourth request with three connections: %v, sent %t", c.Err, c.Sent)
	}
	wg.Wait()
	must(t, server.Resume())
	redistest.Eventually(t, patience, func() bool { return connections(t, list) < before },
		"connections that timed out to be closed")
}

// A restarted master has closed every connection. Nothing is sent on these connections, so no request is lost.
func TestConnectionsClosedWhileIdleAreReplacedUnseen(t *testing.T) {
	server, m := started(t)
	for what, batch := range map[string][]*single.Call{
		"one": batchOf(inspect("k")), "a bundle": releases("a me", "b me"),
	} {
		ask(t, m, inspect("k"))
		must(t, server.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err())
		idle := time.NewTimer(60 * time.Millisecond)
		<-idle.C // longer than a connection is trusted without a look
		m.Do(within(t, patience), batch)
		for _, c := range batch {
			if c.Err != nil {
				t.Errorf("%s, behind the end of its connection: %v", what, c.Err)
			}
		}
	}
}

// An idle connection is used again after its last deadline has passed.
func TestAnIdleConnectionOutlivesItsLastDeadline(t *testing.T) {
	server := oddServer(t, says(nil))
	m := dial(t, "redis://"+server.addr)
	const requests = 5
	answered := 0 // all, unless the machine is very slow
	for range requests {
		ask := &single.Call{Request: new(acquire("key", "me", time.Minute))}
		ctx := within(t, short)
		m.Do(ctx, []*single.Call{ask})
		if ask.Err == nil {
			answered++
		}
		<-ctx.Done() // its deadline
	}
	if n := server.connected(); answered > 0 && n > 1+requests-answered {
		t.Errorf("%d connections for %d requests one after another, of which %d were answered", n, requests, answered)
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
	first := send(t, m, short, acquire("free", "me", time.Minute))[0]
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
	var sets atomic.Int32
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "set" && sets.Add(1) > 3 {
			return hangUp
		}
		return ""
	})
	m := direct(t, &redis.Options{Addr: server.addr}, 0)
	for i, c := range send(t, m, patience, acquisitions("a", "b", "c", "d", "e", "f")...) {
		if won(c) != (i < 3) || !won(c) && !c.Unsure() {
			t.Errorf("request %d: %+v, %v, sent %t", i, c.Reply, c.Err, c.Sent)
		}
	}
	if single.IdleConnections(m) != 0 {
		t.Error("the broken connection was kept")
	}
	grants(t, m, release("a", "me"))
}

// The replica at a master's address may be replaced by the master: the next connection finds out. One connection
// shows that the address leads to a replica now. Then all older connections to the same server are dropped, too.
func TestAConnectionToAReplicaIsReplaced(t *testing.T) {
	servers := redistest.StartN(t, 2)
	m := direct(t, &redis.Options{Addr: servers[0].Addr()}, 3)
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

// Features that need go-redis for the life of a connection go through go-redis.
func TestOptionsThatNeedGoRedisUseGoRedis(t *testing.T) {
	server := redistest.Start(t)
	m := opened(t, &redis.Options{Addr: server.Addr(), Limiter: &limiter{}}, single.Options{})
	_, err := m.Ask(t.Context(), inspect("key"))
	if single.Direct(m) || !errors.Is(err, errLimited) {
		t.Errorf("the limiter was not asked: %v", err)
	}
}

var errLimited = errors.New("limited")

type limiter struct{}

func (*limiter) Allow() error         { return errLimited }
func (*limiter) ReportResult(_ error) {}

// A vote is this master's reply to this request. If a connection's set-up gets an error, nothing is sent and nothing
// counts, however many callers there are and however many requests travel together.
func TestHazard59ABatchOnARefusedConnectionGrantsNothing(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, redistest.WithPassword("right"))
	open := redistest.Start(t)
	for name, opt := range map[string]redis.Options{
		"wrong password":   {Addr: locked.Addr(), Password: "secret"},
		"no password":      {Addr: locked.Addr()},
		"no such user":     {Addr: open.Addr(), Username: "nobody", Password: "x"},
		"no such database": {Addr: open.Addr(), DB: 99},
		"odd client name":  {Addr: open.Addr(), ClientName: "a b"},
	} {
		for _, protocol := range []int{2, 3} {
			opt.Protocol = protocol
			own, err := single.Open(&opt, single.Options{})
			must(t, err)
			t.Cleanup(func() { must(t, own.Close()) })
			brought := opt
			for way, m := range map[string]*single.Master{
				"Open": own,
				"New":  over(t, redis.NewClient(&brought)),
				"Ring": over(t, redis.NewRing(&redis.RingOptions{
					Addrs: map[string]string{"one": opt.Addr}, MaxRetries: -1,
					NewClient: func(*redis.Options) *redis.Client { o := opt; return redis.NewClient(&o) },
				})),
				"Cluster": over(t, redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: []string{opt.Addr}, MaxRedirects: -1, MaxRetries: -1,
					NewClient: func(*redis.Options) *redis.Client { o := opt; return redis.NewClient(&o) },
					ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
						return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: opt.Addr}}}}, nil
					},
				})),
			} {
				for _, callers := range []int{1, 2, 64} {
					if protocol == 3 && callers > 2 {
						continue
					}
					t.Run(fmt.Sprintf("%s, RESP%d, %s, %d callers", name, protocol, way, callers), func(t *testing.T) {
						// NOAUTH is the reply to the batch itself. For a request through Cluster and Ring it is
						// unknown whether it was sent.
						nothingCounts(t, m, callers, way == "Ring" || way == "Cluster" || name == "no password")
					})
				}
			}
		}
	}
	for _, s := range []*redistest.Server{locked, open} {
		if keys := s.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("keys were set: %q", keys)
		}
	}
}

// nothingCounts sends every request, in batches of one, two, and all, from several callers at once.
func nothingCounts(t *testing.T, m *single.Master, callers int, sent bool) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range callers {
		all := requests()
		for j := range all {
			all[j].Keys = []string{fmt.Sprint("key", i)}
		}
		wg.Go(func() {
			for _, size := range []int{1, 2, 8} {
				if callers > 8 && size < 8 {
					continue
				}
				for requests := range slices.Chunk(all, size) {
					for _, c := range send(t, m, patience, slices.Clone(requests)...) {
						if c.Err == nil || c.Sent && !sent || c.Reply != (single.Reply{}) ||
							strings.Contains(fmt.Sprint(c.Err), "secret") {
							t.Errorf("operation %d of a batch of %d: %+v, error %v, sent %t", c.Request.Op, size,
								c.Reply, c.Err, c.Sent)
						}
					}
				}
			}
		})
	}
	wg.Wait()
}
