package single

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialer wraps the dialer of opt for connections of a master's own. Closing one sends RST and drops the kernel's send
// queue (SO_LINGER 0): otherwise an acquire that timed out is retransmitted for as long as the kernel pleases, and may
// land after its own release.
//
// A connection that can't be made comes back as one on which nothing works, not as an error. go-redis counts errors of
// its dialer, and after as many as its pool has places dials no more by itself but once a second, for ever: a master
// that has come back would not be noticed for so long.
func dialer(opt *redis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := opt.Dialer
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return deadConn{dialError{asDial(err, network)}}, nil
		}
		raw := conn
		if secure, ok := conn.(*tls.Conn); ok {
			raw = secure.NetConn()
		}
		tcp, ok := raw.(*net.TCPConn)
		if !ok {
			return conn, nil
		}
		if err := tcp.SetLinger(0); err != nil {
			return nil, errors.Join(fmt.Errorf("single: set linger: %w", err), conn.Close())
		}
		return watch(conn, tcp)
	}
}

// errStale is what writing on a connection meets that the master closed while it was idle. Nothing was sent, so the
// request can go out on another one.
var errStale = errors.New("single: the master had closed the connection")

// idleCheck is for how long a connection may have been idle before it is looked at before use.
const idleCheck = 50 * time.Millisecond

// watchedConn looks, before it is written to after a while, whether the master has closed it. go-redis would look
// before every single use, which costs a system call; it does not where a connection is no [syscall.Conn].
type watchedConn struct {
	net.Conn
	raw  syscall.RawConn
	used atomic.Int64 // when it was last written to, in Unix nanoseconds
}

func watch(conn net.Conn, tcp *net.TCPConn) (net.Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("single: %w", err), conn.Close())
	}
	c := &watchedConn{Conn: conn, raw: raw}
	c.used.Store(time.Now().UnixNano())
	return c, nil
}

func (c *watchedConn) Write(b []byte) (int, error) {
	now := time.Now().UnixNano()
	if time.Duration(now-c.used.Load()) > idleCheck && peerClosed(c.raw) {
		return 0, dialError{errStale}
	}
	c.used.Store(now)
	return c.Conn.Write(b)
}

// asDial makes sure that err is known for one of dialling, before which nothing was sent: a context that ended, or a
// TLS handshake that failed, does not say so itself.
func asDial(err error, network string) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return err
	}
	return &net.OpError{Op: "dial", Net: network, Err: err}
}

// dialError marks what went wrong before anything was sent. It is a layer of its own, because go-redis takes one off
// the error of a connection's set-up.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// deadConn is a connection that could not be made.
type deadConn struct{ err error }

func (c deadConn) Read([]byte) (int, error)  { return 0, c.err }
func (c deadConn) Write([]byte) (int, error) { return 0, c.err }

// Close does nothing: there is nothing to close.
func (deadConn) Close() error                     { return nil }
func (deadConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (deadConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (deadConn) SetDeadline(time.Time) error      { return nil }
func (deadConn) SetReadDeadline(time.Time) error  { return nil }
func (deadConn) SetWriteDeadline(time.Time) error { return nil }
