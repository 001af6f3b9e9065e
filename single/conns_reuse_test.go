package single_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// glue gathers writes so that several TLS records are one segment.
type glue struct {
	net.Conn
	hold bool
	held []byte
}

func (g *glue) Write(p []byte) (int, error) {
	if !g.hold {
		return g.Conn.Write(p)
	}
	g.held = append(g.held, p...)
	return len(p), nil
}

func (g *glue) flush() { g.hold = false; _, _ = g.Conn.Write(g.held); g.held = nil }

// An idle connection is used again after its last deadline has passed.
func TestAnIdleConnectionOutlivesItsLastDeadline(t *testing.T) {
	server := oddServer(t, func(int, []string) string { return "" })
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

// Two TLS records in one segment.
func TestHazard42ASurplusReplyInsideTLSAnswersNoRequest(t *testing.T) {
	certificate := redistest.SelfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				g := &glue{Conn: raw}
				c := tls.Server(g, certificate.Server())
				in := bufio.NewReader(c)
				for {
					words, err := command(in)
					if err != nil {
						return
					}
					switch {
					case words[0] == "set" && words[1] == "free":
						g.hold = true
						_, _ = c.Write([]byte("+OK\r\n"))
						_, _ = c.Write([]byte("+OK\r\n"))
						g.flush()
					case words[0] == "set":
						_, _ = c.Write([]byte("$-1\r\n"))
					default:
						_, _ = c.Write([]byte(":0\r\n"))
					}
				}
			}()
		}
	}()
	m, err := single.Open(&redis.Options{Addr: l.Addr().String(), TLSConfig: certificate.Client()}, single.Options{})
	must(t, err)
	defer func() { _ = m.Close() }()
	do := func(key string) *single.Call {
		c := &single.Call{Request: new(acquire(key, "me", time.Minute))}
		m.Do(within(t, patience), []*single.Call{c})
		return c
	}
	c := do("free")
	t.Logf("free: %+v %v", c.Reply, c.Err)
	c = do("taken")
	t.Logf("taken: %+v %v", c.Reply, c.Err)
	if c.Err == nil && c.Reply.Outcome == single.Granted {
		t.Errorf("a taken key was granted by the reply too many of the request before")
	}
}

// A TLS connection comes too late for its first request, and is used for later ones, although the server has sent
// session tickets on it. Without a set-up, no read has consumed the tickets.
func TestALateTLSConnectionWithASessionTicketIsUsed(t *testing.T) {
	t.Parallel()
	certificate := redistest.SelfSigned(t)
	for _, cache := range []bool{false, true} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", certificate.Server())
		must(t, err)
		late := make(chan struct{})
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					<-late // comes the handshake
					in := bufio.NewReader(c)
					for {
						if _, err := command(in); err != nil {
							return
						}
						_, _ = c.Write([]byte("+OK\r\n"))
					}
				}()
			}
		}()
		config := certificate.Client()
		if cache {
			config.ClientSessionCache = tls.NewLRUClientSessionCache(10)
		}
		m, err := single.Open(&redis.Options{Addr: l.Addr().String(), TLSConfig: config}, single.Options{})
		must(t, err)
		if ok, _ := tryFor(t, m, "key", short); ok {
			t.Error("a request was answered before the handshake")
		}
		close(late)
		redistest.Eventually(t, patience, func() bool { return single.IdleConnections(m) > 0 }, "the late connection")
		for range 3 { // it has tickets only once it was read
			redistest.Eventually(t, patience, func() bool {
				ok, _ := tryFor(t, m, "key", short)
				return ok
			}, "the master to vote")
		}
		must(t, m.Close())
		must(t, l.Close())
	}
}

// Close of a TLS connection with a full queue.
func TestClosingATLSConnectionKeepsTheDeadline(t *testing.T) {
	certificate := redistest.SelfSigned(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", certificate.Server())
	must(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.(*tls.Conn).NetConn().(*net.TCPConn).SetReadBuffer(4096)
			go func() { _ = c.(*tls.Conn).Handshake() }() // then stopped
		}
	}()
	m, err := single.Open(&redis.Options{Addr: l.Addr().String(), TLSConfig: certificate.Client()}, single.Options{})
	must(t, err)
	defer func() { _ = m.Close() }()
	var batch []*single.Call
	for i := range 256 {
		batch = append(batch,
			&single.Call{Request: new(acquire(fmt.Sprint(i, strings.Repeat("k", 64<<10)), "me", time.Minute))})
	}
	began := time.Now()
	m.Do(within(t, 200*time.Millisecond), batch)
	took := time.Since(began)
	t.Logf("took %v: %v, sent %t", took, batch[0].Err, batch[0].Sent)
	// the alert that crypto/tls sends first has 5 s; a busy machine needs some of the time, too
	if took > 4*time.Second {
		t.Errorf("a batch with a deadline of 200 ms took %v", took)
	}
}

// A batch with a surplus reply is followed by the guard's questions.
func TestARecheckHidesNoSurplusReply(t *testing.T) {
	var extra atomic.Bool
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "set" && words[1] != single.GuardKey {
			if words[1] == "taken" {
				return "$-1\r\n"
			}
			if extra.Load() {
				return "+OK\r\n+OK\r\n"
			}
			return "+OK\r\n"
		}
		if words[0] == "evalsha" {
			return ":0\r\n"
		}
		if words[0] == "get" {
			return "$7\r\n3600000\r\n"
		}
		return guardAnswer(words)
	})
	var clock atomic.Int64
	m, err := single.Open(&redis.Options{Addr: server.addr},
		single.Options{RestartGuard: time.Second, Clock: func() time.Duration { return time.Duration(clock.Load()) }})
	must(t, err)
	defer func() { _ = m.Close() }()
	do := func(keys ...string) (granted []bool) {
		var batch []*single.Call
		for _, key := range keys {
			batch = append(batch, &single.Call{Request: new(acquire(key, "me", time.Minute))})
		}
		m.Do(within(t, patience), batch)
		for _, c := range batch {
			granted = append(granted, c.Err == nil && c.Reply.Outcome == single.Granted)
		}
		return granted
	}
	clock.Add(int64(10 * time.Second))
	do("free")
	clock.Add(int64(10 * time.Second))
	extra.Store(true)
	got := do("free", "taken")
	t.Log("recheck due:", got)
	if got[1] {
		t.Error("a taken key was granted by a reply too many")
	}
}

// The append-only file is turned off on a connection in use.
func TestHazard58AnAppendOnlyFileThatIsTurnedOffIsNoticed(t *testing.T) {
	server := redistest.Start(t, redistest.WithAOF())
	var clock atomic.Int64
	m, err := single.Open(&redis.Options{Addr: server.Addr()}, single.Options{
		RestartGuard: time.Minute, Clock: func() time.Duration { return time.Duration(clock.Load()) },
	})
	must(t, err)
	defer func() { _ = m.Close() }()
	votes := func(key, owner string) (single.Reply, error) {
		return m.Ask(within(t, patience), acquire(key, owner, time.Minute))
	}
	_, _ = votes("a", "me")
	clock.Add(int64(10 * time.Minute))
	_, err = votes("a", "me")
	must(t, err) // marked
	must(t, server.Client().ConfigSet(t.Context(), "appendonly", "no").Err())
	clock.Add(int64(2 * time.Second))
	_, _ = votes("b", "me") // rechecks
	clock.Add(int64(2 * time.Second))
	reply, err := votes("c", "first")
	must(t, err)
	t.Logf("first: %+v", reply)
	must(t, server.Kill())
	must(t, server.Restart())
	server.Client().Ping(t.Context())
	reply, err = votes("c", "second")
	t.Logf("second, after a restart that forgot the first: %+v %v", reply, err)
	if _, guarded := errors.AsType[*single.GuardError](err); !guarded {
		t.Errorf("want a GuardError: the lock of the first, with a ttl of a minute, was forgotten")
	}
}
