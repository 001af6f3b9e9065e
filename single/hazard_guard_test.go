package single_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// ownAndThrough are masters that send the guard's questions on the library's own connections and on go-redis's.
func ownAndThrough(t *testing.T, addr string, guard time.Duration) map[string]*single.Master {
	t.Helper()
	masters := make(map[string]*single.Master)
	for name, opt := range map[string]*redis.Options{
		"own": {Addr: addr}, "through go-redis": {Addr: addr, OnConnect: func(context.Context, *redis.Conn) error {
			return nil
		}},
	} {
		m, err := single.Open(opt, single.Options{RestartGuard: guard})
		must(t, err)
		t.Cleanup(func() { must(t, m.Close()) })
		if single.Direct(m) != (name == "own") {
			t.Fatalf("%s: direct %t", name, single.Direct(m))
		}
		masters[name] = m
	}
	return masters
}

// young gives the answers of a durable server that was restarted a moment ago and has the mark.
func young(words []string) string {
	switch {
	case words[0] == "info" && words[1] == "server":
		return "$31\r\nrun_id:b\r\nuptime_in_seconds:1\r\n\r\n"
	case words[0] == "get":
		return "$7\r\n3600000\r\n"
	}
	return guardAnswer(words)
}

// If any of the guard's questions gets an error that passes, the guard judges nothing: the connection is refused, and
// the next one asks again.
func TestHazard38AQuestionAnsweredWithLoadingIsAskedAgain(t *testing.T) {
	for _, code := range []string{
		"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy", "MASTERDOWN Link with MASTER is down",
		"CLUSTERDOWN x",
	} {
		for _, question := range []string{"info", "time", "get", "config"} {
			var asked atomic.Int32
			server := oddServer(t, func(_ int, words []string) string {
				if words[0] == question && asked.Load() < 1 {
					return "-" + code + "\r\n"
				}
				if words[0] == "set" && words[1] != single.GuardKey {
					asked.Add(1)
				}
				return young(words)
			})
			for way, m := range ownAndThrough(t, server.addr, time.Hour) {
				asked.Store(0)
				c := &single.Call{Request: new(acquire("key", "me", time.Minute))}
				m.Do(within(t, patience), []*single.Call{c})
				var guarded *single.GuardError
				if c.Err == nil || c.Sent || errors.As(c.Err, &guarded) || !strings.Contains(c.Err.Error(), code[:4]) {
					t.Errorf("%s, %s to %s: %v, sent %t; want that error, and nothing sent", way, code[:4], question,
						c.Err, c.Sent)
				}
				asked.Store(1)
				if _, err := m.Ask(within(t, patience), acquire("key", "me", time.Minute)); err != nil {
					t.Errorf("%s, after %s to %s: %v; a durable server with its data votes at once", way, code[:4],
						question, err)
				}
			}
		}
	}
}

// While it is known for how long a master stays guarded, a connection is made only now and then, to ask again.
func TestHazard44AGuardedMasterGetsFewConnections(t *testing.T) {
	const looksAtMost = 12 // in a second, of a guard of ten seconds: one each and a half
	server := redistest.Start(t)
	addr := server.Addr()
	var dials atomic.Int32
	dialer := func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	for name, opt := range map[string]*redis.Options{
		"own": {Addr: addr, Dialer: dialer}, "through go-redis": {
			Addr: addr, Dialer: dialer, Limiter: nil, OnConnect: func(context.Context, *redis.Conn) error {
				return nil
			},
		},
	} {
		var clock atomic.Int64 // of this process
		m, err := single.Open(opt, single.Options{RestartGuard: 10 * time.Minute, Clock: func() time.Duration {
			return time.Duration(clock.Load())
		}})
		must(t, err)
		t.Cleanup(func() { must(t, m.Close()) })
		dials.Store(0)
		for range 500 { // ten seconds, one request each 20 ms, as a lane's probes are
			var guarded *single.GuardError
			if _, err := m.Ask(within(t, patience), inspect("key")); !errors.As(err, &guarded) ||
				guarded.Remaining <= 0 {
				t.Fatalf("%s: %v", name, err)
			}
			clock.Add(int64(20 * time.Millisecond))
		}
		if n := dials.Load(); n < 2 || n > looksAtMost {
			t.Errorf("%s: %d connections for 500 requests in ten seconds", name, n)
		}
		clock.Add(int64(10 * time.Minute))
		if _, err := m.Ask(within(t, patience), inspect("key")); err != nil {
			t.Errorf("%s: after the guard: %v", name, err)
		}
	}
}

// A changed setting breaks no connection, so the guard asks again on the connection in use.
func TestHazard58ALessCarefulServerIsNoticedOnAConnectionInUse(t *testing.T) {
	server := redistest.Start(t, redistest.WithAOF())
	var clock atomic.Int64
	m, err := single.Open(&redis.Options{Addr: server.Addr()}, single.Options{
		RestartGuard: time.Second, Clock: func() time.Duration { return time.Duration(clock.Load()) },
	})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	pass := func(d time.Duration) { clock.Add(int64(d)) }
	votes := func() error {
		_, err := m.Ask(within(t, patience), acquire("key", "me", time.Minute))
		return err
	}
	restart := func() {
		must(t, server.Kill())
		must(t, server.Restart())
		server.Client().Ping(t.Context())
	}
	_ = votes() // it is young
	pass(10 * time.Second)
	must(t, votes()) // and marked from now on
	restart()
	must(t, votes()) // the control: it is excused
	must(t, server.Client().ConfigSet(t.Context(), "appendfsync", "everysec").Err())
	pass(2 * time.Second)
	must(t, votes()) // on the connection that is there
	restart()        // with the settings of its start
	var guarded *single.GuardError
	if err := votes(); !errors.As(err, &guarded) {
		t.Errorf("after a run that had stopped to fsync: %v, want a GuardError", err)
	}
}

// backlogged is an address at which connections are neither made nor refused, because the listener's backlog is full.
func backlogged(t *testing.T) (addr string, accept func()) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	must(t, err)
	addr = fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 8 {
		conn, err := net.DialTimeout("tcp", addr, short)
		if err != nil {
			return addr, func() {}
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	redistest.NothingTested(t, "this kernel does not let a backlog fill")
	return "", nil
}

// Connecting is part of the request: it ends at the request's deadline, with nothing sent.
func TestHazard37DialingKeepsTheDeadline(t *testing.T) {
	addr, _ := backlogged(t)
	m := dial(t, "redis://"+addr)
	for _, size := range []int{1, 3} {
		var batch []*lane.Call
		for range size {
			call := single.Call{Request: new(acquire("key", "me", time.Minute))}
			c := &lane.Call{Call: call, Deadline: time.Now().Add(short), To: make(receiver, 1)}
			batch = append(batch, c)
		}
		began := time.Now()
		queue := newLane(t, m) // its contexts have a deadline and do not announce its end
		for _, c := range batch {
			queue.Send(c)
		}
		for _, c := range batch {
			<-c.To.(receiver)
			if c.Err == nil || c.Sent {
				t.Errorf("%v, sent %t", c.Err, c.Sent)
			}
		}
		if took := time.Since(began); took > 900*time.Millisecond {
			t.Errorf("%d requests of %v took %v", size, short, took)
		}
	}
}

// A request may be shorter than connecting to a distant master. The master still gets its connection.
func TestADialGoesOnForTheNextRequest(t *testing.T) {
	server := redistest.Start(t)
	hold := make(chan struct{})
	var dials atomic.Int32
	m, err := single.Open(&redis.Options{
		Addr: server.Addr(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			select {
			case <-hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}, single.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	for range 10 { // more than are kept
		c := &single.Call{Request: new(inspect("key"))}
		m.Do(within(t, 5*time.Millisecond), []*single.Call{c})
		if c.Err == nil || c.Sent {
			t.Fatalf("without a connection: %v, sent %t", c.Err, c.Sent)
		}
	}
	close(hold)
	redistest.Eventually(t, patience, func() bool { return single.IdleConnections(m) > 0 }, "an idle connection")
	before := dials.Load()
	ask(t, m, inspect("key"))
	if dials.Load() != before {
		t.Error("it was not used")
	}
	if n := single.IdleConnections(m); n > 4 {
		t.Errorf("%d connections were kept", n)
	}
}
