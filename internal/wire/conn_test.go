package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/wire"
)

// The ways in which a user's Dialer may wrap a connection: as a bare net.Conn, with the methods of the original, or
// with its socket or the underlying connection visible.
type (
	bare    struct{ net.Conn }
	whole   struct{ *net.TCPConn }
	socket  struct{ bare }
	layered struct{ bare }
)

func (s socket) SyscallConn() (syscall.RawConn, error) {
	return s.Conn.(*net.TCPConn).SyscallConn()
}

func (l layered) NetConn() net.Conn { return l.Conn }

// wrapping is one way to wrap a connection.
type wrapping struct {
	wrap   func(net.Conn) net.Conn
	resets bool
	secret bool
}

func wrappings(config *tls.Config) map[string]wrapping {
	return map[string]wrapping{
		"as it is":               {func(c net.Conn) net.Conn { return c }, true, false},
		"nothing but a net.Conn": {func(c net.Conn) net.Conn { return bare{c} }, false, false},
		"with all methods":       {func(c net.Conn) net.Conn { return whole{c.(*net.TCPConn)} }, true, false},
		"with its socket":        {func(c net.Conn) net.Conn { return socket{bare{c}} }, true, false},
		"with what it goes over": {func(c net.Conn) net.Conn { return layered{bare{c}} }, true, false},
		"two layers":             {func(c net.Conn) net.Conn { return layered{bare{layered{bare{c}}}} }, true, false},
		"TLS":                    {func(c net.Conn) net.Conn { return tls.Client(c, config) }, true, true},
		"TLS over a net.Conn":    {func(c net.Conn) net.Conn { return tls.Client(bare{c}, config) }, false, true},
		"TLS over what is layers": {func(c net.Conn) net.Conn {
			return tls.Client(layered{bare{c}}, config)
		}, true, true},
	}
}

// peer is the other end of a connection.
type peer struct {
	conn net.Conn // the connection for writes
	raw  *net.TCPConn
	mine *net.TCPConn // this side's, beneath the wrapping
}

// connected makes a connection through a wrapping, and returns its other end.
func connected(t *testing.T, certificate *redistest.Certificate, w wrapping) (*wire.Conn, *peer) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	p := new(peer)
	config := wire.Config{
		Network: "tcp", Addr: l.Addr().String(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			p.mine = c.(*net.TCPConn)
			return w.wrap(c), nil
		},
	}
	c, _, err := config.Dial(within(t, patience))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	other, err := l.Accept()
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })
	p.conn, p.raw = other, other.(*net.TCPConn)
	if w.secret {
		p.conn = tls.Server(other, certificate.Server())
	}
	return c, p
}

// arrived reports that there are bytes to read.
func (p *peer) arrived(t *testing.T) bool {
	t.Helper()
	raw, err := p.mine.SyscallConn()
	must(t, err)
	n := 0
	must(t, raw.Control(func(fd uintptr) {
		n, _, _ = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}))
	return n > 0
}

// exchanged sends a command and reads its reply.
func exchanged(t *testing.T, c *wire.Conn, p *peer) {
	t.Helper()
	served := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(p.conn, make([]byte, len("*1\r\n$4\r\nping\r\n")))
		if err == nil {
			_, err = p.conn.Write([]byte("+PONG\r\n"))
		}
		served <- err
	}()
	reply := c.Ask(within(t, patience), &wire.ExpectAny, "ping")
	must(t, reply.Err())
	must(t, <-served)
}

// However a Dialer wraps its connections, bytes that the server sends unasked are noticed before the next use.
func TestHazard42AWrappedConnectionIsLookedAt(t *testing.T) {
	certificate := redistest.SelfSigned(t)
	for name, w := range wrappings(certificate.Client()) {
		c, p := connected(t, certificate, w)
		for range 3 {
			exchanged(t, c, p)
			redistest.Eventually(t, patience, c.Clean, name+": a connection without unread bytes to be clean")
		}
		_, err := p.conn.Write([]byte("+OK\r\n"))
		must(t, err)
		redistest.Eventually(t, patience, func() bool { return p.arrived(t) }, "it to arrive")
		if c.Clean() {
			t.Errorf("%s: a connection with something unread is clean", name)
		}
	}
}

// A wrapped connection that shows its underlying connection is closed with a reset.
func TestAWrappedConnectionIsClosedWithAReset(t *testing.T) {
	certificate := redistest.SelfSigned(t)
	for name, w := range wrappings(certificate.Client()) {
		c, p := connected(t, certificate, w)
		exchanged(t, c, p)
		must(t, c.Close())
		must(t, p.raw.SetReadDeadline(time.Now().Add(patience)))
		_, err := io.Copy(io.Discard, p.raw)
		if reset := errors.Is(err, syscall.ECONNRESET); reset != w.resets {
			t.Errorf("%s: the other side read %v; a reset is expected: %t", name, err, w.resets)
		}
	}
}

// A question ends with its context, even if the context is canceled long before its deadline.
func TestAQuestionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, other := net.Pipe()
		defer other.Close()
		config := wire.Config{Dialer: func(context.Context, string, string) (net.Conn, error) { return mine, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c, _, err := config.Dial(ctx)
		must(t, err)
		defer func() { _ = c.Close() }()
		go func() { _, _ = io.Copy(io.Discard, other) }()
		began := time.Now()
		time.AfterFunc(time.Second, cancel)
		reply := c.Ask(ctx, &wire.ExpectAny, "set", "mark", "1")
		if took := time.Since(began); took > time.Second || !errors.Is(reply.Err(), context.Canceled) {
			t.Errorf("after %v: %v", took, reply.Err())
		}
	})
}

// A TLS connection whose server reads nothing more is closed at once. The farewell of [tls.Conn] would wait for 5 s.
func TestATLSConnectionIsClosedWithoutAFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certificate := redistest.SelfSigned(t)
		mine, other := net.Pipe()
		defer other.Close()
		config := wire.Config{Dialer: func(context.Context, string, string) (net.Conn, error) {
			return tls.Client(mine, certificate.Client()), nil
		}}
		c, _, err := config.Dial(within(t, patience))
		must(t, err)
		exchanged(t, c, &peer{conn: tls.Server(other, certificate.Server())})
		began := time.Now()
		if err := c.Send([]byte("unread"), began.Add(time.Second)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("send: %v, although nobody reads", err)
		}
		must(t, c.Close())
		if took := time.Since(began); took != time.Second {
			t.Errorf("closed after %v, want the deadline of 1s", took)
		}
	})
}
