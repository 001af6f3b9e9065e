package wire_test

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/wire"
)

// counting is a user's connection that counts the bytes that are written.
type counting struct {
	*net.TCPConn
	written *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// Commands that are larger than the kernel takes at once arrive whole, however a Dialer wraps its connections. A
// wrapped connection's own Write method is called.
func TestCommandsOfAnyLengthArriveWhole(t *testing.T) {
	certificate := redistest.SelfSigned(t)
	all := wrappings(certificate.Client())
	var written atomic.Int64
	all["one that counts"] = wrapping{wrap: func(c net.Conn) net.Conn { return counting{c.(*net.TCPConn), &written} }}
	for name, w := range all {
		for _, size := range []int{10, 16 << 20} {
			c, p := connected(t, certificate, w)
			commands := bytes.Repeat([]byte("0123456789"), size/10)
			served := make(chan []byte, 1)
			go func() {
				got := make([]byte, len(commands))
				_, err := io.ReadFull(p.conn, got)
				if err == nil {
					_, err = p.conn.Write([]byte("+OK\r\n"))
				}
				if err != nil {
					got = nil
				}
				served <- got
			}()
			must(t, c.SendAndWait(commands, time.Now().Add(patience)))
			reply := c.Reply(&wire.ExpectOK)
			if !reply.OK() || !bytes.Equal(<-served, commands) {
				t.Errorf("%s: %d bytes did not arrive, or not their reply: %v", name, len(commands), reply.Err())
			}
		}
	}
	if want := int64(16<<20/10*10 + 10); written.Load() != want {
		t.Errorf("the counting connection has seen %d bytes of %d", written.Load(), want)
	}
}

// A reply that comes at once is not missed.
func TestAReplyIsNotMissed(t *testing.T) {
	c, p := connected(t, nil, wrappings(nil)["as it is"])
	go func() { _, _ = io.Copy(p.raw, p.raw) }()
	for range 20_000 {
		must(t, c.SendAndWait([]byte("+OK\r\n"), time.Now().Add(patience)))
		if reply := c.Reply(&wire.ExpectOK); !reply.OK() {
			t.Fatal(reply.Err())
		}
	}
}

// A wait ends at its deadline, and an ended wait does not end the next one. A wait also ends when the peer goes away.
func TestAWaitForAReplyEnds(t *testing.T) {
	c, p := connected(t, nil, wrappings(nil)["as it is"])
	for range 2 {
		err := c.SendAndWait([]byte("x"), time.Now().Add(20*time.Millisecond))
		reply := c.Reply(&wire.ExpectOK)
		//nolint:errorlint // as it is
		if timeout, is := reply.Err().(net.Error); err != nil || !is || !timeout.Timeout() {
			t.Fatalf("no answer: %v, %v", err, reply.Err())
		}
		c, p = connected(t, nil, wrappings(nil)["as it is"])
		must(t, c.SendAndWait(nil, time.Now().Add(time.Millisecond)))
	}
	go func() {
		_, _ = io.ReadFull(p.raw, make([]byte, 1))
		_ = p.raw.Close()
	}()
	must(t, c.SendAndWait([]byte("x"), time.Now().Add(patience)))
	if reply := c.Reply(&wire.ExpectOK); reply.Kind() != wire.Failure {
		t.Errorf("the other side has gone: %v", reply.Kind())
	}
	if err := c.SendAndWait([]byte("x"), time.Now().Add(-time.Second)); err == nil {
		t.Error("something was sent behind its deadline")
	}
}
