package single_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// short is a request's deadline, and long the least that a client with default settings takes instead.
	short = 100 * time.Millisecond
	long  = 3 * time.Second
)

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

// pausedRequest warms m up, pauses its server and returns how long a request with a short deadline took.
func pausedRequest(t *testing.T, server *redistest.Server, m *single.Master) time.Duration {
	t.Helper()
	ask(t, m, inspect("key"))
	must(t, server.Pause())
	r := acquire("key", "me", time.Minute)
	c := single.Call{Request: &r}
	began := time.Now()
	m.Do(within(t, short), []*single.Call{&c})
	took := time.Since(began)
	if c.Err == nil || !c.Unsure() || c.Answered() {
		t.Errorf("the call on a paused server: error %v, unsure %t, answered %t", c.Err, c.Unsure(), c.Answered())
	}
	return took
}

func TestHazard04TheDeadlineIsKeptWithADefaultClient(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	m := over(t, client)
	raw := make(chan error, 1)
	if took := pausedRequest(t, server, m); took < short || took > long/2 {
		t.Errorf("took %v, want %v", took, short)
	}
	// The control: the same client, used directly, does not keep the deadline.
	go func() { raw <- client.Get(within(t, short), "key").Err() }()
	select {
	case err := <-raw:
		t.Errorf("the client itself kept the deadline (%v): this test shows nothing", err)
	case <-time.After(3 * short):
	}
	must(t, server.Resume())
	_ = <-raw //nolint:staticcheck // however it ended
	if opt := client.Options(); opt.ContextTimeoutEnabled || opt.MaxRetries == 0 {
		t.Error("the caller's own client was changed")
	}
}

// The same, if the options would allow it longer.
func TestHazard04TheDeadlineIsKeptOnConnectionsOfOurOwn(t *testing.T) {
	server := redistest.Start(t)
	m, err := single.Open(&redis.Options{Addr: server.Addr(), ReadTimeout: long}, single.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	if took := pausedRequest(t, server, m); took < short || took > long/2 {
		t.Errorf("took %v, want %v", took, short)
	}
	must(t, server.Resume())
}

func TestHazard04TheDeadlineIsKeptByABatch(t *testing.T) {
	server := redistest.Start(t)
	m := over(t, redis.NewClient(&redis.Options{Addr: server.Addr()}))
	ask(t, m, inspect("key"))
	must(t, server.Pause())
	defer func() { must(t, server.Resume()) }()
	var batch []*single.Call
	for _, key := range []string{"a", "b", "c"} {
		r := acquire(key, "me", time.Minute)
		batch = append(batch, &single.Call{Request: &r})
	}
	began := time.Now()
	m.Do(within(t, short), batch)
	if took := time.Since(began); took < short || took > long/2 {
		t.Errorf("took %v, want %v", took, short)
	}
	for i, c := range batch {
		if !c.Unsure() {
			t.Errorf("call %d: %v, unsure %t", i, c.Err, c.Unsure())
		}
	}
}

func TestAllKindsOfClientsSpeakTheSameLock(t *testing.T) {
	t.Parallel()
	cluster, clusterClient := clusterOf(t)
	server := redistest.Start(t)
	for name, m := range map[string]*single.Master{
		"ClusterClient": over(t, clusterClient),
		"Ring":          over(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}})),
		"Client":        over(t, redis.NewClient(&redis.Options{Addr: server.Addr()})),
		"RESP3":         over(t, redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 3})),
		"Dial":          dial(t, server.URL()),
		"Dial, cluster": dial(t, cluster.URL()),
	} {
		key := "key of " + name
		for i, want := range []single.Outcome{single.Granted, single.Refused, single.Granted, single.Repaired} {
			r := []single.Request{
				acquire(key, "me", time.Minute), acquire(key, "other", time.Minute),
				release(key, "me"), extend(key, "me", time.Minute, true),
			}[i]
			if got := ask(t, m, r); got.Outcome != want {
				t.Errorf("%s: step %d: %+v, want outcome %d", name, i, got, want)
			}
		}
		var batch []*single.Call // with keys of different slots
		for _, suffix := range []string{"a", "b", "c", "d"} {
			r := acquire(key+suffix, "me", time.Minute)
			batch = append(batch, &single.Call{Request: &r})
		}
		m.Do(t.Context(), batch)
		for _, c := range batch {
			if c.Err != nil || c.Reply.Outcome != single.Granted {
				t.Errorf("%s: batch: %+v, %v", name, c.Reply, c.Err)
			}
		}
	}
}

func TestAFailedDialMeansNotSent(t *testing.T) {
	t.Parallel()
	port, err := localport.Reserve() // no server listens there
	must(t, err)
	defer func() { must(t, port.Release()) }()
	for name, m := range map[string]*single.Master{
		"Dial": dial(t, "redis://"+port.Addr()),
		"New":  over(t, redis.NewClient(&redis.Options{Addr: port.Addr()})),
	} {
		for _, size := range []int{1, 3} {
			var batch []*single.Call
			for range size {
				r := acquire("key", "me", time.Minute)
				batch = append(batch, &single.Call{Request: &r})
			}
			m.Do(within(t, patience), batch)
			for _, c := range batch {
				if c.Err == nil || c.Sent || c.Unsure() || c.Answered() {
					t.Errorf("%s, %d calls: error %v, sent %t, unsure %t", name, size, c.Err, c.Sent, c.Unsure())
				}
			}
		}
	}
}

func TestAConnectionThatBreaksMayHaveCarriedTheRequest(t *testing.T) {
	server := oddServer(t, func(_ int, words []string) string {
		if strings.EqualFold(words[0], "set") {
			return hangUp
		}
		return ""
	})
	r := acquire("key", "me", time.Minute)
	c := single.Call{Request: &r}
	dial(t, "redis://"+server.addr).Do(within(t, patience), []*single.Call{&c})
	if c.Err == nil || !c.Unsure() || server.heard("set") == 0 {
		t.Errorf("unsure %t after %v; the server has heard %d", c.Unsure(), c.Err, server.heard("set"))
	}
}

// closeSeen makes a Master over a listener that never answers, and lets a request time out. It returns the error that
// the listener's side of the connection reads at its end.
func closeSeen(t *testing.T, open func(addr string) *single.Master) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	timedOut := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		<-timedOut
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		for err == nil {
			_, err = conn.Read(make([]byte, 4096))
		}
		ended <- err
	}()
	m := open(listener.Addr().String())
	if _, err := m.Ask(within(t, short), acquire("key", "me", time.Minute)); err == nil {
		t.Error("a listener that never answers did")
	}
	must(t, m.Client().Close())
	close(timedOut)
	return <-ended
}

func TestARequestThatTimedOutResetsItsConnection(t *testing.T) {
	err := closeSeen(t, func(addr string) *single.Master {
		m, err := single.Dial("redis://"+addr, single.Options{})
		must(t, err)
		return m
	})
	if !isReset(err) {
		t.Errorf("the server read %v, want a reset", err)
	}
	// The control: a user's own client closes in order, and its data is delivered.
	err = closeSeen(t, func(addr string) *single.Master {
		m, err := single.New(redis.NewClient(&redis.Options{Addr: addr}), single.Options{})
		must(t, err)
		return m
	})
	if isReset(err) {
		t.Error("an ordinary client was closed with a reset as well: this test shows nothing")
	}
}

// lateCommand leaves a part of an acquire undelivered in front of a paused server, lets it time out, and reports
// whether the server performs it once it is resumed.
func lateCommand(t *testing.T, open func(*redistest.Server) *single.Master) bool {
	t.Helper()
	server := redistest.Start(t)
	list := lister(t, server)
	before := connections(t, list)
	m := open(server)
	ask(t, m, inspect("key"))
	must(t, server.Pause())
	bytes := make([]byte, 512<<10) // more than the server's receive buffer, less than our send buffer takes on top
	_, _ = rand.Read(bytes)
	if _, err := m.Ask(within(t, short), acquire("key", hex.EncodeToString(bytes), time.Minute)); err == nil {
		t.Error("a paused server answered")
	}
	must(t, m.Close()) // on a busy machine nothing may have been written, and the connection be kept
	if err := m.Client().Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		t.Error(err)
	}
	must(t, server.Resume())
	// Connections are served in the order of their arrival at best. So when only the earlier connections are left,
	// the server has read all that it will ever read.
	redistest.Eventually(t, patience, func() bool {
		return connections(t, list) <= before
	}, "the server to see the end of the connection")
	return value(t, server, "key") != ""
}

// lister is a client of one connection to count others by: a pool may open a second one whenever the machine is slow.
func lister(t *testing.T, s *redistest.Server) *redis.Client {
	t.Helper()
	o := *s.Client().Options() // which has all rights
	o.PoolSize, o.ReadTimeout = 1, patience
	c := redis.NewClient(&o)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// connections returns how many connections a server has.
func connections(t *testing.T, list *redis.Client) int {
	t.Helper()
	all, err := list.ClientList(t.Context()).Result()
	must(t, err)
	return strings.Count(all, "\n")
}

func TestARequestThatAStoppedMasterHasNotReceivedIsDiscarded(t *testing.T) {
	if lateCommand(t, func(s *redistest.Server) *single.Master {
		m, err := single.Dial(s.URL(), single.Options{})
		must(t, err)
		return m
	}) {
		t.Error("an acquire that had timed out set the key after all")
	}
	// The control. On a busy machine the time may be over before anything was written.
	redistest.Eventually(t, patience, func() bool {
		return lateCommand(t, func(s *redistest.Server) *single.Master {
			m, err := single.New(redis.NewClient(&redis.Options{Addr: s.Addr()}), single.Options{})
			must(t, err)
			return m
		})
	}, "an ordinary connection to set the key after all, without which this test shows nothing")
}

func TestHazard04TheDeadlineIsKeptWhileOthersUseUpTheClientsPool(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1})
	m := over(t, client)
	ask(t, m, inspect("key"))
	blocked := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { blocked <- client.BLPop(ctx, 0, "queue").Err() }()
	redistest.Eventually(t, patience, func() bool {
		return client.PoolStats().IdleConns == 0 && client.PoolStats().TotalConns == 1
	}, "the only connection to be taken")

	r := acquire("key", "me", time.Minute)
	c := lane.Call{Call: single.Call{Request: &r}, To: make(receiver, 1), Deadline: time.Now().Add(short)}
	began := time.Now()
	queue := newLane(t, m) // a lane's context has a deadline and no timer
	queue.Send(&c)
	<-c.To.(receiver)
	if took := time.Since(began); took > long/2 {
		t.Errorf("took %v, want %v", took, short)
	}
	if c.Err == nil {
		t.Error("the call without a connection was answered")
	}
	must(t, server.Client().RPush(t.Context(), "queue", "on").Err())
	must(t, <-blocked)
}

func TestHazard04TheDeadlineIsKeptByAClusterClient(t *testing.T) {
	t.Parallel()
	server, client := clusterOf(t)
	m := over(t, client)
	took := pausedRequest(t, server, m)
	must(t, server.Resume())
	if took > long/2 {
		t.Errorf("took %v, want %v", took, short)
	}
}

func TestHazard04TheDeadlineIsKeptByARing(t *testing.T) {
	server := redistest.Start(t)
	m := over(t, redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}}))
	took := pausedRequest(t, server, m)
	must(t, server.Resume())
	if took > long/2 {
		t.Errorf("took %v, want %v", took, short)
	}
}

// The deadline of a request bounds it, whatever timeouts the user's client has.
func TestHazard68AShorterTimeoutOfTheClientDoesNotEndARequest(t *testing.T) {
	server := redistest.Start(t)
	m := over(t,
		redis.NewClient(&redis.Options{
			Addr: server.Addr(), ReadTimeout: 20 * time.Millisecond, WriteTimeout: 20 * time.Millisecond,
		}))
	ask(t, m, inspect("key"))
	must(t, server.Pause())
	ended := make(chan error, 1)
	ctx := within(t, patience)
	go func() {
		_, err := m.Ask(ctx, inspect("key"))
		ended <- err
	}()
	select {
	case err := <-ended:
		must(t, server.Resume())
		t.Fatalf("it ended with %v while its deadline was ahead", err)
	case <-time.After(short):
	}
	must(t, server.Resume())
	must(t, <-ended)
}
