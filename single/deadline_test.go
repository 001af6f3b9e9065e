package single_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// warm makes a connection. On a starved machine that may take longer than the client's timeouts.
func warm(t *testing.T, m *single.Master) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool {
		_, err := m.Ask(t.Context(), inspect("key"))
		return err == nil
	}, "an answer")
}

// pausedRequest warms m up, pauses its server and returns how long requests with a short deadline took.
func pausedRequest(t *testing.T, server *redistest.Server, m *single.Master, requests ...single.Request) time.Duration {
	t.Helper()
	warm(t, m)
	must(t, server.Pause())
	began := time.Now()
	for _, c := range send(t, m, short, requests...) {
		if c.Err == nil || !c.Unsure() || c.Answered() {
			t.Errorf("a call on a paused server: error %v, unsure %t, answered %t", c.Err, c.Unsure(), c.Answered())
		}
	}
	return time.Since(began)
}

// However a Master is made, its requests end at their deadline, also if its options would allow them longer.
func TestHazard04TheDeadlineIsKeptByEveryKindOfMaster(t *testing.T) {
	server := redistest.Start(t)
	cluster, clusterClient := clusterOf(t)
	own := &redis.Options{Addr: server.Addr(), ReadTimeout: long}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr()}})
	for _, c := range []struct {
		name   string
		server *redistest.Server
		m      *single.Master
		keys   []string
	}{
		{"own connections", server, opened(t, own, single.Options{}), []string{"key"}},
		{"a client", server, over(t, redis.NewClient(&redis.Options{Addr: server.Addr()})), []string{"a", "b", "c"}},
		{"a Ring", server, over(t, ring), []string{"key"}},
		{"a ClusterClient", cluster, over(t, clusterClient), []string{"key"}},
	} {
		if took := pausedRequest(t, c.server, c.m, acquisitions(c.keys...)...); took < short || took > long/2 {
			t.Errorf("%s: %d requests took %v, want %v", c.name, len(c.keys), took, short)
		}
		must(t, c.server.Resume())
	}
}

func TestHazard04TheDeadlineIsKeptWithADefaultClient(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	m := over(t, client)
	raw := make(chan error, 1)
	if took := pausedRequest(t, server, m, acquisitions("key")...); took < short || took > long/2 {
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

// The deadline of a request bounds it, whatever timeouts the user's client has.
func TestHazard68AShorterTimeoutOfTheClientDoesNotEndARequest(t *testing.T) {
	server := redistest.Start(t)
	m := over(t,
		redis.NewClient(&redis.Options{
			Addr: server.Addr(), ReadTimeout: 20 * time.Millisecond, WriteTimeout: 20 * time.Millisecond,
		}))
	warm(t, m)
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

// Connecting is part of the request: it ends at the request's deadline, with nothing sent.
func TestHazard37DialingKeepsTheDeadline(t *testing.T) {
	for _, size := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := &far{takes: after(time.Hour)}
			// Contexts of a lane have a deadline and do not announce its end.
			queue := newLane(t, f.master(t, redis.Options{}))
			began, ended := time.Now(), make(receiver, size)
			for i := range size {
				queue.Send(&lane.Call{
					Call: *batchOf(acquire(fmt.Sprint(i), "me", time.Minute))[0], Deadline: began.Add(short), To: ended,
				})
			}
			for range size {
				if c := <-ended; c.Err == nil || c.Sent {
					t.Errorf("%v, sent %t", c.Err, c.Sent)
				}
			}
			if took := time.Since(began); took > short {
				t.Errorf("%d requests of %v took %v", size, short, took)
			}
		})
	}
}

func TestAFailedDialMeansNotSent(t *testing.T) {
	t.Parallel()
	port, err := localport.Reserve() // no server listens there
	must(t, err)
	defer func() { must(t, port.Release()) }()
	for name, m := range map[string]*single.Master{
		"Dial":         dial(t, "redis://"+port.Addr()),
		"New":          over(t, redis.NewClient(&redis.Options{Addr: port.Addr()})),
		"with a guard": opened(t, &redis.Options{Addr: port.Addr()}, single.Options{RestartGuard: time.Second}),
	} {
		for _, keys := range [][]string{{"key"}, {"key", "key", "key"}} {
			for _, c := range send(t, m, patience, acquisitions(keys...)...) {
				if c.Err == nil || c.Sent || c.Unsure() || c.Answered() {
					t.Errorf("%s, %d calls: error %v, sent %t, unsure %t", name, len(keys), c.Err, c.Sent, c.Unsure())
				}
			}
		}
	}
}

func TestAConnectionThatBreaksMayHaveCarriedTheRequest(t *testing.T) {
	server := oddServer(t, says(map[string]string{"set": hangUp}))
	c := *batchOf(acquire("key", "me", time.Minute))[0]
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

// isReset reports that a connection ended by RST.
func isReset(err error) bool { return !errors.Is(err, io.EOF) && errors.Is(err, syscall.ECONNRESET) }

func TestARequestThatTimedOutResetsItsConnection(t *testing.T) {
	if err := closeSeen(t, func(addr string) *single.Master {
		return opened(t, &redis.Options{Addr: addr}, single.Options{})
	}); !isReset(err) {
		t.Errorf("the server read %v, want a reset", err)
	}
	// The control: a user's own client closes in order, and its data is delivered.
	if isReset(closeSeen(t, func(addr string) *single.Master {
		return over(t, redis.NewClient(&redis.Options{Addr: addr}))
	})) {
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
