package single

import (
	"bufio"
	"io"
)

// Encode is a request's first command as it goes over the wire, and as go-redis gets it.
func Encode(r *Request) (encoded []byte, boxed []any) {
	return r.encode(nil, stageFirst, false), r.boxed(stageFirst, false)
}

// ReadReply reads the reply to r, and leaves what comes after it. err is the connection's, replyErr what the caller gets.
func ReadReply(from io.Reader, r *Request) (reply Reply, replyErr, err error) {
	in, ok := from.(*bufio.Reader)
	if !ok {
		in = bufio.NewReaderSize(from, wireBuffer)
	}
	answer, err := readAnswer(in)
	if err != nil || answer.err != nil {
		return Reply{}, answer.err, err
	}
	reply, replyErr = decode(r, &answer)
	return reply, replyErr, nil
}

// ErrProtocol is what a reply meets that no master gives.
var ErrProtocol = errProtocol

// Direct reports that m has connections that it writes to itself.
func Direct(m *Master) bool {
	_, direct := m.carrier.(*wires)
	return direct
}

// IdleConnections is how many of those are idle, BusyConnections how many are in use.
func IdleConnections(m *Master) int {
	w := m.carrier.(*wires)
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle)
}

// BusyConnections is how many connections of m's own are in use.
func BusyConnections(m *Master) int { return len(m.carrier.(*wires).slots) }

// EncodedSize is for how many bytes there is room when r is encoded, and how many it has.
func EncodedSize(r *Request) (room, used int) { return r.encodedSize(), len(r.encodeFirst(nil)) }
