package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// expectations are those of a lock's requests, and others.
var expectations = []wire.Expect{
	wire.ExpectOK, wire.ExpectAny,
	{},
	{Kinds: wire.Of(wire.Status, wire.Null), Status: "OK"},
	{Kinds: wire.Of(wire.Number)},
	{Kinds: wire.Of(wire.Number, wire.Array), Items: 5, Text: 64},
	{Kinds: wire.Of(wire.Number, wire.Array), Items: 1024},
}

// taken is the most memory that reading raw may take: for announced elements, within the expectation, and for the
// bytes that have come.
func taken(raw []byte, expect *wire.Expect) uint64 {
	const element, pushes = 128, 2 * 16384
	return uint64(64<<10 + element*(2*expect.Items+pushes*bytes.Count(raw, []byte("\n"))) + 8*len(raw))
}

// replies are right and wrong replies of a server.
var replies = []string{
	"+OK\r\n", "+QUEUED\r\n", "-ERR x\r\n", ":1\r\n", "$2\r\nOK\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
	"*2\r\n:1\r\n$1\r\nx\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n",
	"_\r\n", "#t\r\n", ",1.5\r\n", "(1\r\n", "!3\r\nERR\r\n", "=6\r\ntxt:OK\r\n", "=2\r\nab\r\n", "%1\r\n+a\r\n:1\r\n",
	"~1\r\n+OK\r\n", ">2\r\n+x\r\n*1\r\n:1\r\n+OK\r\n", "|1\r\n+a\r\n+b\r\n+OK\r\n",
	"$999999999999\r\n", "$536870912\r\nx", "*999999999\r\n", "%999999999\r\n", "*-5\r\n", "%4611686018427387905\r\n",
	":9223372036854775808\r\n", "$9223372036854775807\r\n", "+OK\r\n+OK\r\n", "", "\r\n", "+OK\n",
	strings.Repeat("*1\r\n", 100), "-" + strings.Repeat("x", 5000) + "\r\n", "+" + strings.Repeat("x", 5000) +
		"\r\n", strings.Repeat(">1\r\n:1\r\n", 10) + ":5\r\n",
}

// FuzzReply: reading any bytes of a server does not panic, and takes no more memory than has come or was expected.
// The result is a reply of an expected kind, a server's error or a failure. Only +OK is OK.
func FuzzReply(f *testing.F) {
	for i, seed := range replies {
		for which := range expectations {
			f.Add([]byte(seed), byte(which), byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, which, step byte) {
		expect := expectations[int(which)%len(expectations)]
		if took := exactly(raw, &expect); took > taken(raw, &expect) {
			t.Errorf("%d bytes for a reply of %d", took, len(raw))
		}
		reply := wire.Parse(raw, &expect)
		whole := inPieces(t, raw, int(step)%7+1, &expect)
		if fault := wrong(raw, &reply, &whole, &expect); fault != "" {
			t.Error(fault)
		}
	})
}

// wrong returns the fault in the result of reading raw, at once and in pieces; "" if there is none.
func wrong(raw []byte, reply, inPieces *wire.Reply, expect *wire.Expect) string {
	kind := reply.Kind()
	if kind == wire.Failure || kind == wire.Refusal {
		if reply.Err() == nil || len(reply.Err().Error()) > 2048 {
			return fmt.Sprintf("%q: %v", raw, reply.Err())
		}
	}
	switch {
	case kind == wire.Unread && len(raw) > 0, kind == wire.Push:
		return fmt.Sprintf("%q is %v", raw, kind)
	case kind != wire.Failure && kind != wire.Refusal && kind != wire.Unread && !expect.Kinds.Has(kind):
		return fmt.Sprintf("%q is %v, which was not expected", raw, kind)
	case kind == wire.Status && expect.Status != "" && reply.Str() != expect.Status:
		return fmt.Sprintf("%q is the status %q", raw, reply.Str())
	case reply.OK() && !bytes.HasSuffix(raw, []byte("+OK\r\n")):
		return fmt.Sprintf("%q is OK", raw)
	case kind != wire.Failure && len(raw) > 0 && !same(inPieces, reply):
		return fmt.Sprintf("%q is %v (%v), and in pieces %v (%v)", raw, kind, reply.Err(), inPieces.Kind(),
			inPieces.Err())
	default:
		return ""
	}
}

// inPieces reads the same bytes from a connection that delivers a few at a time, and then ends.
func inPieces(t *testing.T, raw []byte, step int, expect *wire.Expect) wire.Reply {
	t.Helper()
	config := wire.Config{
		Network: "tcp", Addr: "fake",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &pieces{left: raw, step: step}, nil
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := config.Dial(ctx)
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, conn.Send(nil, time.Time{}))
	return conn.Reply(expect)
}

func same(a, b *wire.Reply) bool {
	return a.Kind() == b.Kind() && a.Int() == b.Int() && a.Str() == b.Str() &&
		fmt.Sprint(a.Err()) == fmt.Sprint(b.Err()) &&
		slices.EqualFunc(a.Items(), b.Items(), func(a, b wire.Reply) bool { return same(&a, &b) })
}

// pieces is a connection that delivers the rest of its bytes a few at a time.
type pieces struct {
	net.Conn
	left []byte
	step int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, errors.New("no more")
	}
	n := copy(b[:min(len(b), p.step)], p.left)
	p.left = p.left[n:]
	return n, nil
}

func (*pieces) Write(b []byte) (int, error)      { return len(b), nil }
func (*pieces) Close() error                     { return nil }
func (*pieces) SetDeadline(time.Time) error      { return nil }
func (*pieces) SetReadDeadline(time.Time) error  { return nil }
func (*pieces) SetWriteDeadline(time.Time) error { return nil }

// The control: a bound that nothing can exceed proves nothing. A parser that trusts the server's length exceeds it.
func TestReadingStaysWithinItsMemoryBound(t *testing.T) {
	var before, after runtime.MemStats
	raw := []byte("$536870912\r\n")
	runtime.ReadMemStats(&before)
	_ = make([]byte, 536870912>>4)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took <= taken(raw, &expectations[1]) {
		t.Errorf("%d bytes pass", took)
	}
}
