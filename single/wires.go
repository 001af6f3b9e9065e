package single

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// wires is the carrier over connections of the library's own. go-redis sets each of them up (TLS, credentials, database,
// the guard's questions) and carries its first pipeline; after that the connection is written to and read from
// directly. A pipeline of go-redis costs the client several times what the master needs to answer it, most of it for
// what a lock does not use; here it is one write of bytes made beforehand, and reads without a value for each reply.
type wires struct {
	opt   *redis.Options // of a client, with the dialer of conn.go
	full  *redis.Options // the same with go-redis's defaults, which must not be given to a client: they mean other things
	slots chan struct{}  // one for each connection that there may be

	mu     sync.Mutex
	idle   []*wire // the latest used last
	closed bool
}

// wire is one connection. It is used by one batch at a time.
type wire struct {
	client *redis.Client // which makes the connection, and has it as its only one
	made   made
	conn   net.Conn // nil before the first batch was carried
	in     *bufio.Reader
	out    []byte
	args   []arg // of a bundle
	born   time.Time
	used   time.Time
}

// made is what a wire's client has dialled. It may do so in a goroutine that nobody waits for any more.
type made struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (m *made) add(conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = append(m.conns, conn)
}

// only returns the one connection there is, nil if there is none or more than one.
func (m *made) only() net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.conns) != 1 {
		return nil
	}
	return m.conns[0]
}

const (
	// wireBuffer holds the usual answers of a full batch.
	wireBuffer = 4 << 10
	// keepBuffer bounds what a connection keeps for its next batch: one with huge keys is rare.
	keepBuffer = 1 << 20
)

// newWires makes connections by opt; client was made of the same options.
func newWires(opt *redis.Options, client *redis.Client) *wires {
	full := client.Options()
	return &wires{opt: opt, full: full, slots: make(chan struct{}, max(1, full.PoolSize))}
}

// direct reports that connections made by opt need nothing of go-redis once they are set up.
func direct(opt *redis.Options) bool {
	return opt.StreamingCredentialsProvider == nil && opt.Limiter == nil
}

func (w *wires) prepare(r *Request) {
	if r.encodedFirst == nil {
		r.encodedFirst = r.encodeFirst(make([]byte, 0, r.encodedSize()))
	}
}

// encodedSize is how many bytes encodeFirst needs: enough for most requests, almost enough for the rest.
func (r *Request) encodedSize() int {
	size := 96 + len(r.Owner)
	switch {
	case r.trailing() > 0:
		size += 170 + len(r.Keys[0])
	case r.quick() || r.Op == Release:
	default:
		size += 96
	}
	for _, key := range r.Keys {
		size += len(key)
		if !r.quick() {
			size += len(key) + 32
		}
	}
	return size
}

func (w *wires) carry(ctx context.Context, todo []exchange) {
	c, err := w.take(ctx)
	if err != nil {
		fail(todo, err)
		return
	}
	if c.conn == nil {
		clientCarrier{c.client}.carry(ctx, todo)
		if c.client.PoolStats().TotalConns > 0 { // else go-redis could not set it up, and what failed may look like a reply
			c.conn = c.made.only()
		}
	} else {
		c.carry(w.deadline(ctx), todo)
	}
	if c.conn != nil && healthy(todo) {
		w.put(c)
	} else {
		w.drop(c)
	}
}

// healthy reports that the connection answered all there was, and may be used again. A replica says that it is
// read-only; behind the same name there may be a master by now.
func healthy(todo []exchange) bool {
	for i := range todo {
		err := todo[i].answer.err
		if err == nil {
			continue
		}
		if reply := redis.Error(nil); !errors.As(err, &reply) || redis.HasErrorPrefix(err, "READONLY") {
			return false
		}
	}
	return true
}

// deadline is ctx's, or what the options allow a request that has none.
func (w *wires) deadline(ctx context.Context) time.Time {
	if deadline, ok := ctx.Deadline(); ok {
		return deadline
	}
	if w.full.ReadTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(w.full.ReadTimeout)
}

// take returns a connection, the one that was used last if one is idle. It waits for a place until ctx's deadline.
func (w *wires) take(ctx context.Context) (*wire, error) {
	if err := w.place(ctx); err != nil {
		return nil, err
	}
	now := time.Now()
	w.mu.Lock()
	for len(w.idle) > 0 && !w.closed {
		last := len(w.idle) - 1
		c := w.idle[last]
		w.idle[last] = nil
		w.idle = w.idle[:last]
		if !w.expired(c, now) {
			w.mu.Unlock()
			return c, nil
		}
		_ = c.client.Close()
	}
	closed := w.closed
	w.mu.Unlock()
	if closed {
		<-w.slots
		return nil, redis.ErrClosed
	}
	return w.open(now), nil
}

// place waits for one of the slots.
func (w *wires) place(ctx context.Context) error {
	select {
	case w.slots <- struct{}{}:
		return nil
	default:
	}
	patience := w.full.PoolTimeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return redis.ErrPoolTimeout
	case <-timer.C:
		return redis.ErrPoolTimeout
	}
}

// expired reports that a connection is too old to be used, by the client's options.
func (w *wires) expired(c *wire, now time.Time) bool {
	idle, life := w.full.ConnMaxIdleTime, w.full.ConnMaxLifetime
	return idle > 0 && now.Sub(c.used) >= idle || life > 0 && now.Sub(c.born) >= life
}

// open makes a connection that go-redis sets up when it carries the first batch.
func (w *wires) open(now time.Time) *wire {
	c := &wire{born: now}
	opt := *w.opt
	opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns = 1, 0, 0
	opt.PipelinePoolSize = -1 // pipelines use the same one, or it would be lost after a first batch that is one
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := w.opt.Dialer(ctx, network, addr)
		if err == nil {
			c.made.add(conn)
		}
		return conn, err
	}
	c.client = redis.NewClient(&opt)
	return c
}

// put keeps a connection for the next batch.
func (w *wires) put(c *wire) {
	if c.in == nil {
		c.in = bufio.NewReaderSize(c.conn, wireBuffer)
	}
	if cap(c.out) > keepBuffer {
		c.out, c.args = nil, nil
	}
	c.used = time.Now()
	w.mu.Lock()
	closed := w.closed
	if !closed {
		w.idle = append(w.idle, c)
	}
	w.mu.Unlock()
	if closed {
		_ = c.client.Close()
	}
	<-w.slots
}

// drop closes a connection.
func (w *wires) drop(c *wire) {
	_ = c.client.Close()
	<-w.slots
}

// close closes what is idle; what is in use is closed when its batch has ended.
func (w *wires) close() error {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.closed = nil, true
	w.mu.Unlock()
	var err error
	for _, c := range idle {
		err = errors.Join(err, c.client.Close())
	}
	return err
}

// carry sends a batch with one write and reads the answers. After an error the connection is of no use any more.
func (c *wire) carry(deadline time.Time, todo []exchange) {
	c.out = c.out[:0]
	for together := range commands(todo) {
		e := &together[0]
		switch first := e.call.Request.encodedFirst; {
		case len(together) > 1:
			c.args = bundleArgs(c.args[:0], together)
			c.out = appendCommand(c.out, c.args)
			clear(c.args) // the texts are their requests'
		case first == nil || e.stage == stageScript || e.source:
			c.out = e.call.Request.encode(c.out, e.stage, e.source)
		case e.stage == stageFirst: // with what belongs to it
			c.out = append(c.out, first...)
		}
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		fail(todo, err)
		return
	}
	if _, err := c.conn.Write(c.out); err != nil {
		fail(todo, err)
		return
	}
	read := 0
	for together := range commands(todo) {
		answer, err := readAnswer(c.in)
		if err != nil {
			fail(todo[read:], err)
			return
		}
		enter(together, answer)
		read += len(together)
	}
}
