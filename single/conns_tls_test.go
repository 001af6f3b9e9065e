package single_test

import (
	"bufio"
	"crypto/tls"
	"net"
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

// lateListener delays connections.
type lateListener struct {
	net.Listener
	late <-chan struct{}
}

func (l *lateListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	<-l.late
	return conn, err
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
	m := opened(t, &redis.Options{Addr: l.Addr().String(), TLSConfig: certificate.Client()}, single.Options{})
	do := func(key string) *single.Call { return send(t, m, patience, acquire(key, "me", time.Minute))[0] }
	c := do("free")
	t.Logf("free: %+v %v", c.Reply, c.Err)
	c = do("taken")
	t.Logf("taken: %+v %v", c.Reply, c.Err)
	if won(c) {
		t.Errorf("a taken key was granted by the reply too many of the request before")
	}
}

// A TLS connection comes too late for its first request, and is used for later ones, although the server has sent
// session tickets on it. Without a set-up, no read has consumed the tickets.
func TestALateTLSConnectionWithASessionTicketIsUsed(t *testing.T) {
	t.Parallel()
	certificate := redistest.SelfSigned(t)
	for _, cache := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		late := make(chan struct{})
		server := oddServerAt(t, tls.NewListener(&lateListener{l, late}, certificate.Server()), says(nil))
		config := certificate.Client()
		if cache {
			config.ClientSessionCache = tls.NewLRUClientSessionCache(10)
		}
		m := opened(t, &redis.Options{Addr: server.addr, TLSConfig: config}, single.Options{})
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
	}
}
