package single

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// dialer wraps the dialer of opt for connections that go-redis makes for a master of the library's own: those of its
// Client, and where [direct] says no those for everything. Closing one sends RST and drops the kernel's send
// queue (SO_LINGER 0): otherwise an acquire that timed out is retransmitted for as long as the kernel pleases, and may
// land after its own release.
//
// A connection that can't be made comes back as one on which nothing works, not as an error. go-redis counts errors of
// its dialer, and after as many as its pool has places dials no more by itself but once a second, for ever: a master
// that has come back would not be noticed for so long.
func dialer(opt *redis.Options, g *guard) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := opt.Dialer
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := g.refusing(); err != nil {
			return deadConn{dialError{err}}, nil //nolint:nilerr // see above
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return deadConn{dialError{asDial(err, network)}}, nil
		}
		if err := wire.ResetOnClose(conn); err != nil {
			return nil, errors.Join(fmt.Errorf("single: %w", err), conn.Close())
		}
		return conn, nil
	}
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
