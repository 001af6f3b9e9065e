package single

import (
	"bufio"
	"io"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Encode returns a request's first command in wire format and in go-redis's form.
func Encode(r *Request) (encoded []byte, boxed []any) {
	e := exchange{call: &Call{Request: r}}
	return e.encode(nil), e.boxed()
}

// ReadReply reads the reply to r's first command, and leaves the bytes after it. err is the connection's error,
// replyErr the caller's.
func ReadReply(from io.Reader, r *Request) (reply Reply, replyErr, err error) {
	in, ok := from.(*bufio.Reader)
	if !ok {
		in = bufio.NewReaderSize(from, 4<<10)
	}
	var want wire.Expect
	expect(&want, []exchange{{call: &Call{Request: r}}})
	answer, err := wire.Read(in, &want)
	if err != nil || answer.Err() != nil {
		return Reply{}, answer.Err(), err
	}
	reply, replyErr = decode(r, &answer)
	return reply, replyErr, nil
}

// ErrProtocol is the error for a reply that no master sends.
var ErrProtocol = wire.ErrProtocol

// Direct reports whether m has its own connections.
func Direct(m *Master) bool {
	_, direct := m.transport.(conns)
	return direct
}

// IdleConnections is how many of those are idle, BusyConnections how many are in use.
func IdleConnections(m *Master) int {
	p := m.transport.(conns)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// BusyConnections is how many of m's own connections are in use.
func BusyConnections(m *Master) int {
	p := m.transport.(conns)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all - p.dialing - len(p.idle)
}

// EncodedSize returns how many bytes are reserved to encode r, and how many it takes.
func EncodedSize(r *Request) (room, used int) {
	first := r.encodeFirst()
	return cap(first), len(first)
}

// IdleClean reports that no idle connection has unread bytes.
func IdleClean(m *Master) bool {
	p := m.transport.(conns)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		if !c.Clean() {
			return false
		}
	}
	return true
}
