package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// granularity is the smallest step of a master's time. Redis itself counts ttls in milliseconds.
const granularity = time.Millisecond

// engine is a miniredis with moving time that gets its connections from outside.
//
// miniredis can follow the clock (ClockTTL), but then a key may expire between two commands of one script, which is
// impossible in Redis. So miniredis uses a time that the engine sets whenever bytes arrive from a client. No
// goroutine ticks, an idle master costs nothing, and every command sees at least the time of its arrival.
//
// miniredis does not listen itself either. Its listener accepts before its commands are registered, so a client that
// reconnects quickly would get "unknown command".
type engine struct {
	db *miniredis.Miniredis

	mu   sync.Mutex
	last time.Time // the latest time that db got

	identity identity
}

func newEngine() (*engine, error) {
	e := &engine{db: miniredis.NewMiniRedis()}
	e.advance()
	e.db.ClockTTL(true)
	conn, err := e.db.Dial() // starts it without a listener
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	e.db.Server().SetPreHook(e.identity.answer)
	return e, nil
}

// advance passes the time to miniredis. It reads the clock under the lock, so miniredis's time never goes back.
func (e *engine) advance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.last) >= granularity {
		e.db.SetTime(now.UTC())
		e.last = now
	}
}

// serve takes over a connection until either side closes it.
func (e *engine) serve(conn net.Conn) { e.db.Server().ServeConn(conn) }

// reborn changes the identity to another run of the server, which clients see by run_id.
func (e *engine) reborn(port int) { e.identity.renew(port) }

// disconnect closes every connection, waits until none is served, and forgets the scripts, like a server that ends.
// The caller must not let a new connection in until disconnect returns.
func (e *engine) disconnect() {
	// Blocked commands (BLPOP and similar) look at Ctx only when they wake up, and a command wakes them.
	e.db.CtxCancel()
	e.db.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"SCRIPT", "FLUSH"})
	e.db.Server().Close()
	e.db.Ctx, e.db.CtxCancel = context.WithCancel(context.Background())
}

// close drops the data.
func (e *engine) close() { e.db.Close() }

// timedConn is a client's connection. It holds back bytes that arrive while the master is paused, and sets the
// master's time before the master sees a byte.
type timedConn struct {
	net.Conn
	gate   *gate
	engine *engine

	once   sync.Once
	closed chan struct{}
}

func newTimedConn(conn net.Conn, gate *gate, engine *engine) *timedConn {
	return &timedConn{Conn: conn, gate: gate, engine: engine, closed: make(chan struct{})}
}

func (c *timedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.gate.wait(c.closed) {
		return 0, net.ErrClosed
	}
	c.engine.advance()
	return n, err
}

func (c *timedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// gate blocks its users while it is shut. The zero value is open.
type gate struct {
	mu      sync.Mutex
	opening chan struct{} // closed when the gate opens; nil while it is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opening == nil {
		g.opening = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opening != nil {
		close(g.opening)
		g.opening = nil
	}
}

// wait returns true once the gate is open, or false if closed is closed first.
func (g *gate) wait(closed <-chan struct{}) bool {
	for {
		g.mu.Lock()
		opening := g.opening
		g.mu.Unlock()
		if opening == nil {
			return true
		}
		select {
		case <-opening:
		case <-closed:
			return false
		}
	}
}
