//go:build linux && (amd64 || arm64) && !race

package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// arrivals reads a TCP socket. The kernel tells with the bytes when they arrived, by the wall clock. This shows whether
// they arrived before the commands left, so no look at the socket has to come before each request.
//
// A reply too many may come at any time:
//
//   - Before the commands leave, and the reply follows before the next read: one read returns both, and more is left
//     in the buffer than one reply. See [Conn.Overfull].
//   - Before the commands leave, and it is read alone: it has an earlier time than the commands.
//   - After the commands have left, before their reply: nothing distinguishes it, with or without a look.
//
// Builds with -race do without: the race detector knows from net's reads and writes, and not from bare system calls, that
// what follows a reply follows the request. Two Lockers in one process order what they guard by nothing else.
//
// A kernel may give no times, or wrong ones. So times count only if the read before had a possible one (dated). After
// a step of the wall clock backwards, one reply is taken for an early one, and its connection is closed.
type arrivals struct {
	conn    *net.TCPConn
	raw     syscall.RawConn
	sent    int64 // the time of the latest commands, until the first read behind them; 0: any time is fine
	dated   bool
	receive func(fd uintptr) (done bool) // made once, because it escapes

	// of the current read
	into    []byte
	n       int
	err     error
	length  int // of control
	control [controlSize]byte
}

const (
	controlSize = syscall.SizeofCmsghdr + 16 // one message with a timespec
	levelAt     = 8
	typeAt      = 12
	secondsAt   = syscall.SizeofCmsghdr
)

// errEarly: see arrivals.
var errEarly = fmt.Errorf("%w: bytes came before the commands that they would answer", ErrProtocol)

// newArrivals returns nil if the kernel gives no times.
func newArrivals(conn *net.TCPConn, raw syscall.RawConn) *arrivals {
	var refused error
	err := raw.Control(func(fd uintptr) {
		refused = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
	})
	if err != nil || refused != nil {
		return nil
	}
	a := &arrivals{conn: conn, raw: raw}
	a.receive = a.receiveOnce
	return a
}

// leaves notes that commands leave now.
func (a *arrivals) leaves() { a.sent = time.Now().UnixNano() }

// sure reports that bytes which come before the next commands will not be taken for a reply.
func (a *arrivals) sure() bool { return a != nil && a.dated }

func (a *arrivals) Read(p []byte) (int, error) {
	a.into, a.n, a.err = p, 0, nil
	err := a.raw.Read(a.receive)
	a.into = nil
	if err == nil && a.err != nil {
		err = &net.OpError{
			Op: "read", Net: "tcp", Source: a.conn.LocalAddr(), Addr: a.conn.RemoteAddr(),
			Err: os.NewSyscallError("recvmsg", a.err),
		}
	}
	switch {
	case err != nil:
		return 0, err
	case a.n == 0:
		return 0, io.EOF
	case a.sent != 0:
		// A part of what came together may have no time. Then p is full, and a reply too many leaves bytes behind it.
		was, whole := a.dated, a.n < len(p)
		a.dated, a.sent = whole && a.time() >= a.sent, 0
		if was && whole && !a.dated {
			return 0, errEarly
		}
	}
	return a.n, nil
}

func (a *arrivals) receiveOnce(fd uintptr) (done bool) {
	for {
		a.n, a.length, _, _, a.err = syscall.Recvmsg(int(fd), a.into, a.control[:], 0)
		if a.err != syscall.EINTR { //nolint:errorlint // the bare error of a system call
			return a.err != syscall.EAGAIN //nolint:errorlint // as above
		}
	}
}

// time is when the latest of the bytes that were read arrived, in nanoseconds since 1970; 0 if that is unknown.
func (a *arrivals) time() int64 {
	get := binary.NativeEndian
	if a.length < controlSize || get.Uint32(a.control[levelAt:]) != syscall.SOL_SOCKET ||
		get.Uint32(a.control[typeAt:]) != syscall.SCM_TIMESTAMPNS {
		return 0
	}
	return int64(get.Uint64(a.control[secondsAt:]))*int64(time.Second) + int64(get.Uint64(a.control[secondsAt+8:]))
}
