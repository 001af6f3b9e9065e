package wire

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Conn is a connection that is set up. Only one goroutine may use it at a time.
type Conn struct {
	conn   net.Conn
	raw    syscall.RawConn // nil if the socket cannot be inspected
	secure *filled         // of TLS
	reader reader
	under  net.Conn         // the connection to close: conn, or the one below TLS
	peek   func(fd uintptr) // inspects the socket; made once, because it escapes
	quiet  bool             // the result of peek
	broken bool
	heard  bool // the server has answered something

	push   func(fd uintptr) (done bool) // see SendAndWait; nil if conn is not a socket of the system
	unsent []byte                       // the bytes that push has to write, or has left
	pushed bool
}

// newConn takes over conn. If conn cannot be used, newConn closes it.
func newConn(conn net.Conn) (*Conn, error) {
	c := &Conn{conn: conn, under: conn}
	from := io.Reader(conn)
	if secure, isTLS := conn.(*tls.Conn); isTLS {
		c.under = secure.NetConn()
		c.secure = &filled{conn: secure}
		from = c.secure
	}
	if err := ResetOnClose(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if socket, isSocket := c.under.(syscall.Conn); isSocket && canPeek {
		raw, err := socket.SyscallConn()
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		c.raw = raw
	}
	c.peek = func(fd uintptr) { c.quiet = nothingToRead(fd) }
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn: // a type that embeds one may do more when it writes
		if c.raw != nil {
			c.push = c.pushOnce
		}
	}
	c.reader = reader{in: bufio.NewReaderSize(from, bufferSize)}
	return c, nil
}

// filled notes whether a read filled its whole buffer. Then the TLS layer may keep more bytes, which neither the
// socket nor the buffer shows.
type filled struct {
	conn net.Conn
	full bool
}

func (f *filled) Read(p []byte) (int, error) {
	n, err := f.conn.Read(p)
	f.full = n == len(p)
	return n, err
}

// Send writes commands. Their replies must be read by the deadline. A zero deadline means none.
func (c *Conn) Send(commands []byte, deadline time.Time) error {
	err := c.conn.SetDeadline(deadline)
	if err == nil {
		_, err = c.conn.Write(commands)
	}
	c.broken = c.broken || err != nil
	return err
}

// SendAndWait is Send for commands that get a reply. It returns when there are bytes to read or the deadline has
// passed; the next Reply reports which. Reading a [net.Conn] tries at once and waits after that. No server is quick
// enough for the first try, so that system call is wasted. Here the socket waits first.
func (c *Conn) SendAndWait(commands []byte, deadline time.Time) error {
	if c.push == nil {
		return c.Send(commands, deadline)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		c.broken = true
		return err
	}
	c.unsent, c.pushed = commands, false
	_ = c.raw.Read(c.push) // the wait begins before push is called, so the reply cannot be missed
	left := c.unsent
	c.unsent = nil
	if len(left) == 0 {
		return nil
	}
	_, err := c.conn.Write(left)
	c.broken = c.broken || err != nil
	return err
}

// pushOnce writes as much as the socket takes. If that is everything, the wait goes on. When pushOnce is called
// again, there is something to read.
func (c *Conn) pushOnce(fd uintptr) (done bool) {
	if c.pushed {
		return true
	}
	c.pushed = true
	c.unsent = c.unsent[writeNow(fd, c.unsent):]
	return len(c.unsent) > 0
}

// Reply reads the reply to the next command that was sent. After a [Failure], all later replies are failures, too.
func (c *Conn) Reply(expect *Expect) Reply {
	if c.broken {
		return Failed(net.ErrClosed)
	}
	reply, err := c.reader.reply(expect)
	c.broken = err != nil
	if err != nil && !c.heard {
		reply = Failed(c.unheard(err))
	}
	c.heard = true
	return reply
}

// unheard explains why a server has answered nothing at all. A server that waits for a TLS handshake hangs up, or
// sends an alert.
func (c *Conn) unheard(err error) error {
	foreign := errors.Is(err, ErrProtocol) && !errors.Is(err, errAlert)
	if foreign || c.secure != nil || ended(err) || errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("it hung up on the first command, as a TLS port (rediss://) does: %w", err)
}

// Drained reports that all replies were read without a failure, and no further bytes with them. A connection that is
// not drained must not be used again.
func (c *Conn) Drained() bool {
	return !c.broken && c.reader.in.Buffered() == 0 && (c.secure == nil || !c.secure.full)
}

// Overfull reports that there are more replies than commands, as far as is known: further bytes have been read that
// do not begin a push.
func (c *Conn) Overfull() bool {
	if c.broken || c.reader.in.Buffered() == 0 {
		return false
	}
	next, _ := c.reader.in.Peek(1) // of the buffered bytes
	return next[0] != '>'
}

// Clean is Drained plus a look at the socket, for the moment before the connection is used again. Unasked bytes, or
// the end of the connection, would otherwise be taken for the next reply. If a Dialer's connection does not show its
// socket, Clean reads it for a moment.
func (c *Conn) Clean() bool {
	switch {
	case !c.Drained():
		return false
	case c.raw == nil:
		return c.nothingComes()
	case c.secure != nil:
		return c.secureQuiet(c.silent())
	default:
		return c.silent()
	}
}

// silent looks at the socket. It uses Control, because Read would only report that the last request's deadline has
// passed.
func (c *Conn) silent() bool { return c.raw.Control(c.peek) == nil && c.quiet }

const (
	// A connection without a visible socket is read for lookTime. A busy machine may need longer before it reads at
	// all: then up to longestLook.
	lookTime    = 200 * time.Microsecond
	longestLook = 16 * lookTime
)

// nothingComes reads for a moment. With a deadline in the past, no byte would ever be read.
func (c *Conn) nothingComes() bool {
	var b [1]byte
	for d := lookTime; d <= longestLook; d *= 2 {
		deadline := time.Now().Add(d)
		if c.conn.SetReadDeadline(deadline) != nil {
			return false
		}
		early := time.Until(deadline) > d/2
		n, err := c.conn.Read(b[:])
		if n != 0 || !ended(err) {
			return false
		}
		if early {
			return true
		}
	}
	return false
}

// ticketTime is how long a TLS connection is read when bytes have come: they only have to be decrypted.
const ticketTime = time.Millisecond

// secureQuiet looks at the bytes that the TLS layer has taken from the socket and not returned: whole records behind
// the one that was read. If the socket is not quiet, a session ticket may have come, which answers no request; the
// TLS layer consumes it.
func (c *Conn) secureQuiet(quiet bool) bool {
	deadline := time.Unix(1, 0) // reads nothing from the socket
	if !quiet {
		deadline = time.Now().Add(ticketTime)
	}
	var b [1]byte
	if c.conn.SetReadDeadline(deadline) != nil {
		return false
	}
	n, err := c.conn.Read(b[:])
	return n == 0 && ended(err) && c.silent()
}

// Close closes the connection. It skips the TLS farewell, which could wait for seconds behind bytes that cannot be
// sent.
func (c *Conn) Close() error { return c.under.Close() }

// ended reports that err is a timeout, with no byte read.
func ended(err error) bool {
	if timeout, is := errors.AsType[net.Error](err); is {
		return timeout.Timeout()
	}
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// ResetOnClose makes closing conn reset it, which drops the bytes that the kernel has not delivered. It finds the
// underlying connection through NetConn, as [tls.Conn] has it. A connection that shows neither SetLinger nor its
// socket is left unchanged.
func ResetOnClose(conn net.Conn) error {
	for {
		if tcp, is := conn.(interface{ SetLinger(seconds int) error }); is {
			if err := tcp.SetLinger(0); err != nil {
				return fmt.Errorf("set linger: %w", err)
			}
			return nil
		}
		if socket, is := conn.(syscall.Conn); is {
			return resetSocket(socket)
		}
		outer, is := conn.(interface{ NetConn() net.Conn })
		if !is {
			return nil
		}
		conn = outer.NetConn()
	}
}

// resetSocket is ResetOnClose for a socket.
func resetSocket(socket syscall.Conn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("set linger: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = setLinger(fd) }); err != nil {
		return fmt.Errorf("set linger: %w", err)
	}
	return failed
}
