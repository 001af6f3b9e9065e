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

// Conn is a connection that is set up. It is used by one goroutine at a time.
type Conn struct {
	conn   net.Conn
	raw    syscall.RawConn // nil where no socket can be looked at
	secure *filled         // of TLS
	reader reader
	under  net.Conn         // what is closed: conn, or what TLS goes over
	peek   func(fd uintptr) // looks at the socket; made once, because it escapes
	quiet  bool             // what peek saw
	broken bool
	heard  bool // the server has answered something

	push   func(fd uintptr) (done bool) // see SendAndWait; nil for what is no socket of the system's own
	unsent []byte                       // what push has to write, or has left
	pushed bool
}

// newConn takes over conn, which is closed if it can't be used.
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

// filled notes whether a read filled all that it was given: then the TLS layer may keep more, which neither the socket
// nor the buffer shows.
type filled struct {
	conn net.Conn
	full bool
}

func (f *filled) Read(p []byte) (int, error) {
	n, err := f.conn.Read(p)
	f.full = n == len(p)
	return n, err
}

// Send writes commands; their replies are to be read by the deadline. A zero deadline is none.
func (c *Conn) Send(commands []byte, deadline time.Time) error {
	err := c.conn.SetDeadline(deadline)
	if err == nil {
		_, err = c.conn.Write(commands)
	}
	c.broken = c.broken || err != nil
	return err
}

// SendAndWait is Send for what is going to be answered: it returns when there is something to read, or the deadline is over,
// which the next Reply says. A [net.Conn] that is read tries at once, and waits when it has tried; no server is that quick, so
// it is a system call in vain. Here a socket waits first.
func (c *Conn) SendAndWait(commands []byte, deadline time.Time) error {
	if c.push == nil {
		return c.Send(commands, deadline)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		c.broken = true
		return err
	}
	c.unsent, c.pushed = commands, false
	_ = c.raw.Read(c.push) // begins to wait before it calls push, so the reply can't be missed
	left := c.unsent
	c.unsent = nil
	if len(left) == 0 {
		return nil
	}
	_, err := c.conn.Write(left)
	c.broken = c.broken || err != nil
	return err
}

// pushOnce writes what the socket takes and, if that is all, has the wait go on. Called again, there is something to read.
func (c *Conn) pushOnce(fd uintptr) (done bool) {
	if c.pushed {
		return true
	}
	c.pushed = true
	c.unsent = c.unsent[writeNow(fd, c.unsent):]
	return len(c.unsent) > 0
}

// Reply reads the reply to the next command that was sent. If it says [Failure], so will all that follow.
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

// unheard is why a server has answered nothing at all. One that waits for a TLS handshake hangs up, or sends an alert.
func (c *Conn) unheard(err error) error {
	if c.secure != nil || ended(err) || errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("it hung up on the first command, as a TLS port (rediss://) does: %w", err)
}

// Drained reports that all replies were read, and that nothing is wrong and nothing else was read with them. A connection
// that is not drained must not be used again.
func (c *Conn) Drained() bool {
	return !c.broken && c.reader.in.Buffered() == 0 && (c.secure == nil || !c.secure.full)
}

// Overfull reports that there are more replies than commands, as far as is known: what else was read begins another one, and is nothing
// that the server may say unasked.
func (c *Conn) Overfull() bool {
	if c.broken || c.reader.in.Buffered() == 0 {
		return false
	}
	next, _ := c.reader.in.Peek(1) // of what is there
	return next[0] != '>'
}

// Clean is Drained with a look at the socket, for the moment before it is used again: what the server has said unasked,
// or the end of the connection, would be taken for the reply to what is sent next. A connection which a Dialer has made
// and which does not show its socket is read for a moment instead.
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

// silent looks at the socket. Control, because Read says no more than that the last request's deadline is over.
func (c *Conn) silent() bool { return c.raw.Control(c.peek) == nil && c.quiet }

const (
	// lookTime is for how long a connection is read whose socket can't be looked at, and longestLook for how long on a machine
	// that is so busy that this has passed before it was read.
	lookTime    = 200 * time.Microsecond
	longestLook = 16 * lookTime
)

// nothingComes reads for a moment. A deadline that has passed already would do for no connection: then nothing is read.
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

// ticketTime is for how long what is there of a TLS connection may be waited for: it is no more than to be decrypted.
const ticketTime = time.Millisecond

// secureQuiet looks at what the TLS layer has taken from the socket and not given away: whole records, behind the one that
// was read. If the socket is not quiet that may be a session ticket, which is nobody's reply; the layer takes it.
func (c *Conn) secureQuiet(quiet bool) bool {
	deadline := time.Unix(1, 0) // nothing is read from the socket
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

// Close closes the connection. TLS is not told: its farewell would wait, for seconds, behind what could not be sent.
func (c *Conn) Close() error { return c.under.Close() }

// ended reports that err is the end of a wait, with nothing read.
func ended(err error) bool {
	if timeout, is := errors.AsType[net.Error](err); is {
		return timeout.Timeout()
	}
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// ResetOnClose has a connection closed with a reset, which drops what the kernel has not delivered. What it goes over is
// found through NetConn, which [tls.Conn] has. One that shows neither SetLinger nor its socket is left as it is.
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
