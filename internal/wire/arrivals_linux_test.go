//go:build linux && (amd64 || arm64) && !race

package wire_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/wire"
)

// dated makes a connection. Its last reply came with a time, so no look comes before the next request.
func dated(t *testing.T) (*wire.Conn, *peer) {
	t.Helper()
	c, p := connected(t, nil, wrappings(nil)["as it is"])
	redistest.Eventually(t, patience, func() bool { // the first replies may have no times
		answer(t, c, p, "+OK\r\n")
		if reply := c.Reply(&wire.ExpectOK); !reply.OK() {
			t.Fatal(reply.Err())
		}
		return c.Dated()
	}, "a reply with its time")
	return c, p
}

// answer sends a request, which the peer answers.
func answer(t *testing.T, c *wire.Conn, p *peer, reply string) {
	t.Helper()
	served := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(p.conn, make([]byte, 1))
		if err == nil {
			_, err = io.WriteString(p.conn, reply)
		}
		served <- err
	}()
	must(t, c.SendAndWait([]byte("x"), time.Now().Add(patience)))
	must(t, <-served)
}

// unasked makes the peer send bytes, and waits for their arrival.
func (p *peer) unasked(t *testing.T, bytes string) {
	t.Helper()
	_, err := io.WriteString(p.conn, bytes)
	must(t, err)
	redistest.Eventually(t, patience, func() bool { return p.arrived(t) > 0 }, "the bytes to arrive")
}

// Bytes that came before a request do not answer it, although nothing looked at the socket before the request left.
func TestHazard42BytesThatCameBeforeARequestDoNotAnswerIt(t *testing.T) {
	c, p := dated(t)
	p.unasked(t, "+OK\r\n")
	if !c.Fresh() {
		t.Fatal("the connection was looked at")
	}
	c.Leave()
	if reply := c.Reply(&wire.ExpectOK); !errors.Is(reply.Err(), wire.ErrProtocol) || c.Drained() {
		t.Fatalf("%v, %v", reply.Kind(), reply.Err())
	}
}

// Neither do such bytes count if the reply follows them. One read may return both.
func TestHazard42AReplyBehindSuchBytesDoesNotCount(t *testing.T) {
	for range 50 {
		c, p := dated(t)
		p.unasked(t, "+OK\r\n")
		answer(t, c, p, "$-1\r\n")
		if reply := c.Reply(&wire.ExpectOK); reply.Err() == nil && !c.Overfull() {
			t.Fatal("a reply too many was not noticed")
		}
	}
}

// Replies of any size come by a connection with times. Only behind a reply that filled the buffer is a look needed.
func TestRepliesOfAnySizeHaveTimes(t *testing.T) {
	c, p := dated(t)
	text := wire.Expect{Kinds: wire.Of(wire.Text), Text: 1 << 20}
	for _, size := range []int{1, 4000, 4089, 4096, 4097, 10_000, 1 << 20} {
		answer(t, c, p, string(wire.AppendCommand(nil, string(make([]byte, size))))[len("*1\r\n"):])
		if reply := c.Reply(&text); reply.Err() != nil || len(reply.Str()) != size {
			t.Fatalf("%d bytes: %v", size, reply.Err())
		}
		if !c.Fresh() {
			t.Fatalf("%d bytes: the connection is not used again", size)
		}
	}
}

// A connection with times returns the same errors as any other connection.
func TestAConnectionWithTimesEndsAsOthersDo(t *testing.T) {
	c, p := dated(t)
	must(t, p.conn.Close())
	redistest.Eventually(t, patience, func() bool { return !c.Clean() }, "the connection to end")
	_ = c.SendAndWait([]byte("x"), time.Now().Add(patience))
	reply := c.Reply(&wire.ExpectOK)
	var op *net.OpError
	if err := reply.Err(); !errors.Is(err, io.EOF) && (!errors.As(err, &op) || op.Op != "read" && op.Op != "write") {
		t.Errorf("%T %v", err, err)
	}
}
