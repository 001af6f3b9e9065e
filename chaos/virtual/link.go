package virtual

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// link is the path between one client and one master.
type link struct {
	w      *world
	client *client
	master *master

	// guarded by the world's mutex
	sent  uint64         // messages so far, in both directions
	conns map[*conn]bool // that the master has not seen the end of
}

// delayLocked draws the time of the next message. The mutex is the world's.
func (l *link) delayLocked() int64 {
	l.sent++
	p := l.w.plan
	spread := uint64(p.MaxDelay-p.MinDelay) + 1
	return int64(p.MinDelay) + int64(hash(p.Seed, uint64(l.client.number), uint64(l.master.number), l.sent)%spread)
}

// dial makes a connection, in a round trip.
func (l *link) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w := l.w
	w.mu.Lock()
	if l.client.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	_, there := w.arrivalLocked(l, toMaster, w.now()+l.delayLocked()) // the kernel answers, also of a frozen master
	answered := make(chan error, 1)
	w.atLocked(there, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		var err error
		if l.master.down {
			err = errRefused
		}
		back, _ := w.arrivalLocked(l, toClient, w.now()+l.delayLocked())
		w.atLocked(back, func() { answered <- err })
	})
	w.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-answered:
		if err != nil {
			return nil, err
		}
		return l.connect()
	}
}

// connect makes a connection. It fails if the master has crashed by now, or the client was killed.
func (l *link) connect() (net.Conn, error) {
	c := &conn{link: l}
	c.changed = sync.NewCond(&l.w.mu)
	c.session = newSession(c)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	switch {
	case l.client.dead:
		return nil, errDead
	case l.master.down:
		return nil, errRefused
	}
	l.conns[c] = true
	return c, nil
}

// breakAll resets all connections of the link. Bytes that have not arrived by then are lost; if also is set, so are
// those in the socket of a frozen master, because its process has ended.
func (l *link) breakAll(also bool) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for c := range l.conns {
		c.breakLocked()
		c.session.breakLocked(also)
	}
	clear(l.conns)
}

// closeAll closes all connections of the link, as a kernel does for a process that has ended. Bytes that were written
// arrive.
func (l *link) closeAll() {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for c := range l.conns {
		c.hard = false
		c.closeLocked()
	}
}

// direction is where bytes go.
type direction bool

const (
	toMaster direction = true
	toClient direction = false
)

// conn is the client's end of a connection, a net.Conn. Its writes never block: the socket's buffer has no end. The
// world's mutex guards its state.
type conn struct {
	link    *link
	session *session // the master's end

	in      []byte
	err     error // of reads, when in is empty
	closed  bool  // by its owner
	broken  bool  // by a reset
	hard    bool  // closing it resets it
	latest  int64 // when the last bytes that were sent are read
	until   time.Time
	alarm   *time.Timer // rings at until
	changed *sync.Cond
}

func (c *conn) Read(p []byte) (int, error) {
	w := c.link.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case len(c.in) > 0:
			n := copy(p, c.in)
			c.in = c.in[n:]
			return n, nil
		case c.err != nil:
			return 0, c.err
		case !c.until.IsZero() && !time.Now().Before(c.until):
			return 0, os.ErrDeadlineExceeded
		}
		c.changed.Wait()
	}
}

func (c *conn) Write(p []byte) (int, error) {
	w := c.link.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.broken:
		return 0, errReset
	}
	c.sendLocked(append([]byte(nil), p...))
	return len(p), nil
}

// sendLocked sends bytes, or the end of the connection if there are none. They arrive in order.
func (c *conn) sendLocked(b []byte) {
	w := c.link.w
	read, arrived := w.arrivalLocked(c.link, toMaster, w.now()+c.link.delayLocked())
	c.latest = w.atLocked(max(c.latest+1, read), func() { c.session.arrive(b, arrived) })
}

// arrive gives this end bytes, or the end of the connection.
func (c *conn) arrive(b []byte) {
	w := c.link.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.closed || c.broken:
		return
	case len(b) > 0:
		c.in = append(c.in, b...)
	default:
		c.err = io.EOF
	}
	c.changed.Broadcast()
}

// Close implements net.Conn. Bytes that were written arrive, unless SetLinger(0) was called.
func (c *conn) Close() error {
	c.link.w.mu.Lock()
	defer c.link.w.mu.Unlock()
	c.closeLocked()
	return nil
}

func (c *conn) closeLocked() {
	if c.closed {
		return
	}
	c.closed = true
	c.changed.Broadcast()
	if c.alarm != nil {
		c.alarm.Stop()
	}
	switch {
	case c.broken:
	case c.hard:
		c.session.breakLocked(false)
	default:
		c.sendLocked(nil)
	}
}

// breakLocked breaks this end. It loses all bytes that were not read.
func (c *conn) breakLocked() {
	if !c.broken {
		c.broken, c.in, c.err = true, nil, errReset
		c.changed.Broadcast()
	}
}

// SetLinger does the same as for a net.TCPConn: after SetLinger(0), Close drops the bytes that have not arrived.
func (c *conn) SetLinger(seconds int) error {
	c.link.w.mu.Lock()
	defer c.link.w.mu.Unlock()
	c.hard = seconds == 0
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	w := c.link.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.until = t
	switch {
	case t.IsZero():
		if c.alarm != nil {
			c.alarm.Stop()
		}
	case c.alarm != nil:
		c.alarm.Reset(time.Until(t))
	default:
		c.alarm = time.AfterFunc(time.Until(t), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			c.changed.Broadcast()
		})
	}
	return nil
}

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn: writes never wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) LocalAddr() net.Addr  { return addr("10.1.0.1:1") }
func (c *conn) RemoteAddr() net.Addr { return addr(address(c.link.master.number)) }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// hash mixes numbers into one (splitmix64).
func hash(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h ^= p + 0x9e3779b97f4a7c15 + h<<6 + h>>2
		h += 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
