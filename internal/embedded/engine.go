package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// granularity is the smallest step of a master's time. Redis itself counts ttls in milliseconds.
const granularity = time.Millisecond

// Engine is a miniredis with moving time that gets its connections from outside: the data and the commands of a master,
// without a socket. All methods may be called concurrently.
//
// miniredis can follow the clock (ClockTTL), but then a key may expire between two commands of one script, which is
// impossible in Redis. So miniredis uses a time that the engine sets whenever bytes arrive from a client. No
// goroutine ticks, an idle master costs nothing, and every command sees at least the time of its arrival.
//
// miniredis does not listen itself either. Its listener accepts before its commands are registered, so a client that
// reconnects quickly would get "unknown command".
type Engine struct {
	db  *miniredis.Miniredis
	now func() time.Time

	mu   sync.Mutex
	last time.Time // the latest time that db got

	identity identity
	first    atomic.Pointer[func(c *server.Peer, command string, args []string) bool]
}

// NewEngine makes an empty engine that follows this clock. Close ends it.
func NewEngine(now func() time.Time) (*Engine, error) {
	e := &Engine{db: miniredis.NewMiniRedis(), now: now}
	e.Advance()
	e.db.ClockTTL(true)
	conn, err := e.db.Dial() // starts it without a listener
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	e.db.Server().SetPreHook(e.answer)
	return e, nil
}

// Advance passes the time to miniredis, for the bytes that arrive next. It reads the clock under the lock, so
// miniredis's time goes back only if the clock does, by more than its granularity.
func (e *Engine) Advance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); now.Sub(e.last).Abs() >= granularity {
		e.db.SetTime(now.UTC())
		e.last = now
	}
}

// Serve takes over a connection until either side closes it. Call Advance before bytes arrive on it.
func (e *Engine) Serve(conn net.Conn) { e.db.Server().ServeConn(conn) }

// Intercept sets a function that gets every command first, also those of scripts; nil for none. It returns true if it
// has answered the command. Commands of a script come while miniredis is locked.
func (e *Engine) Intercept(by func(c *server.Peer, command string, args []string) bool) {
	e.first.Store(&by)
}

// Dispatch performs a command, and writes the reply to c. Intercept's function may call it for commands that come from
// no script.
func (e *Engine) Dispatch(c *server.Peer, args []string) { e.db.Server().Dispatch(c, args) }

// answer runs before every command, also of scripts; true means that it has answered the command.
func (e *Engine) answer(c *server.Peer, command string, args ...string) bool {
	if first := e.first.Load(); first != nil && *first != nil && (*first)(c, command, args) {
		return true
	}
	return e.identity.answer(c, command, args...)
}

// Empty removes all data.
func (e *Engine) Empty() { e.db.FlushAll() }

// Text returns the value of a key that is a string, or "".
func (e *Engine) Text(key string) string {
	text, _ := e.db.Get(key) // "" with the error that it is not there, or no string
	return text
}

// TTL returns the ttl of an existing key; -1 if the key never expires.
func (e *Engine) TTL(key string) time.Duration {
	if ttl := e.db.TTL(key); ttl > 0 {
		return ttl
	}
	return -1
}

// Endless returns how many keys never expire.
func (e *Engine) Endless() int {
	n := 0
	for _, key := range e.db.Keys() {
		if e.db.TTL(key) == 0 {
			n++
		}
	}
	return n
}

// reborn changes the identity to another run of the server, which clients see by run_id.
func (e *Engine) reborn(port int) { e.identity.renew(port) }

// Disconnect closes every connection, waits until none is served, and forgets the scripts, like a server that ends.
// The caller must not let a new connection in until Disconnect returns.
func (e *Engine) Disconnect() {
	// Blocked commands (BLPOP and similar) look at Ctx only when they wake up, and a command wakes them.
	e.db.CtxCancel()
	e.db.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"SCRIPT", "FLUSH"})
	e.db.Server().Close()
	e.db.Ctx, e.db.CtxCancel = context.WithCancel(context.Background())
}

// Close drops the data.
func (e *Engine) Close() { e.db.Close() }

// timedConn is a client's connection. It holds back bytes that arrive while the master is paused, and sets the
// master's time before the master sees a byte.
type timedConn struct {
	net.Conn
	gate   *gate
	engine *Engine

	once   sync.Once
	closed chan struct{}
}

func newTimedConn(conn net.Conn, gate *gate, engine *Engine) *timedConn {
	return &timedConn{Conn: conn, gate: gate, engine: engine, closed: make(chan struct{})}
}

func (c *timedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.gate.wait(c.closed) {
		return 0, net.ErrClosed
	}
	c.engine.Advance()
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
