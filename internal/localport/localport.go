// Package localport hands out TCP ports of 127.0.0.1 to servers that come and go, as test masters do.
//
// Port 0 is not enough for these servers. The kernel then picks a port in its ephemeral range. While such a server is
// down, any client on the machine may get the same port for its own end of a connection. Then the server cannot come
// back, or a client that dials it connects to itself. So this package uses ports below the ephemeral range. A UDP
// socket on the same number keeps all other users of this package, in any process, from choosing it. UDP and TCP
// numbers are independent, and the kernel closes the socket whenever and however the process ends.
package localport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

// The range of ports: above most well-known services, below the ephemeral range of Linux (from 32768).
const (
	lowest  = 12000
	highest = 32000
)

// attempts bounds the search of Reserve. There are 20,000 numbers, so a search that fails so often means that
// something is wrong.
const attempts = 200

// ErrTaken matches the error of Reserve and ReserveNumber when the port is in use or reserved by another user.
var ErrTaken = errors.New("localport: port is taken")

// Port is one port number, kept until Release.
type Port struct {
	number int
	guard  net.PacketConn
}

// Reserve keeps a port on which no program listened a moment ago. A program that does not use this package can still
// take it before the caller listens. So if the caller's server finds the port in use, reserve another one.
func Reserve() (*Port, error) {
	for range attempts {
		port, err := ReserveNumber(lowest + rand.IntN(highest-lowest))
		if errors.Is(err, ErrTaken) {
			continue
		}
		return port, err
	}
	return nil, fmt.Errorf("%w: no free one found in %d attempts between %d and %d", ErrTaken, attempts, lowest,
		highest)
}

// ReserveNumber keeps exactly this port. The error matches ErrTaken when the number is in use.
func ReserveNumber(number int) (*Port, error) {
	if number < 1 || number > 65535 {
		return nil, fmt.Errorf("localport: %d is not a port number", number)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
	guard, err := net.ListenPacket("udp4", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %d is kept by another process or test: %w", ErrTaken, number, err)
	}
	probe, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: something listens on %s: %w", ErrTaken, address, err), guard.Close())
	}
	if err := probe.Close(); err != nil {
		return nil, errors.Join(err, guard.Close())
	}
	return &Port{number: number, guard: guard}, nil
}

// patience is how long Listen keeps trying: much longer than a child needs until it runs its program.
const patience = 200 * time.Millisecond

// Listen listens on a TCP address that this process has listened on before, for example in Reserve. A child process
// that is starting has copies of all sockets until it runs its program. While it has a copy of the earlier listener,
// the port is in use. So Listen tries again for a moment.
func Listen(address string) (net.Listener, error) {
	for deadline := time.Now().Add(patience); ; {
		listener, err := net.Listen("tcp4", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
		<-time.After(time.Millisecond) // the kernel does not say when the port is free
	}
}

// Number is the port number.
func (p *Port) Number() int { return p.number }

// Addr is host:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Release gives the number back. Calling it again only returns an error.
func (p *Port) Release() error { return p.guard.Close() }
