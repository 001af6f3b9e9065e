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

// dialer wraps the dialer of opt for go-redis's connections to a master that the library opened itself: the
// connections of its Client, and all of its connections if [direct] returns false. Closing such a connection sends
// RST and drops the kernel's send queue (SO_LINGER 0). Otherwise the kernel would retransmit an acquire that timed
// out for as long as it likes, and the acquire could arrive after its own release.
//
// If no connection can be made, the wrapper returns a dead connection and no error. go-redis counts its dialer's
// errors. After as many errors as its pool has places, it dials only once a second, for ever, so it would notice the
// master's return that late.
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

// asDial marks err as an error of dialling, before which nothing was sent. A context that ended, or a TLS handshake
// that failed, is not marked by itself.
func asDial(err error, network string) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return err
	}
	return &net.OpError{Op: "dial", Net: network, Err: err}
}

// dialError marks an error that came before anything was sent. It is a separate layer, because go-redis removes one
// layer from the error of a connection's set-up.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// deadConn replaces a connection that could not be made. Reads and writes return err.
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
