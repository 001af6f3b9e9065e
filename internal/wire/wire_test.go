package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

var (
	must   = locktest.Must
	within = locktest.Within
)

// An unread reply is an error, and so is a failed one.
func TestAnUnreadReplyIsAnError(t *testing.T) {
	var unread wire.Reply
	none, failed := wire.Failed(nil), wire.Failed(io.ErrClosedPipe)
	nothing := wire.Parse(nil, &wire.ExpectAny)
	for name, r := range map[string]*wire.Reply{"zero": &unread, "no reason": &none, "no bytes": &nothing} {
		if !errors.Is(r.Err(), wire.ErrUnread) || r.OK() || r.Refused("") || r.Kind() != wire.Unread {
			t.Errorf("%s: %v, %v", name, r.Kind(), r.Err())
		}
	}
	if !errors.Is(failed.Err(), io.ErrClosedPipe) || failed.OK() || failed.Refused("") {
		t.Errorf("a failure: %v", failed.Err())
	}
}

func TestRepliesAreParsed(t *testing.T) {
	for raw, want := range map[string]string{
		"+OK\r\n": "a simple string OK true", "+QUEUED\r\n": "a simple string QUEUED false",
		"$2\r\nOK\r\n": "a bulk string OK false",
		":7\r\n":       "an integer 7", "$-1\r\n": "a null", "*-1\r\n": "a null", "_\r\n": "a null",
		"#t\r\n":   "a value of another kind",
		",1.5\r\n": "a value of another kind", "=6\r\ntxt:ab\r\n": "a bulk string ab false",
		"*2\r\n:1\r\n+a\r\n": "an array of 2",
		"%1\r\n+a\r\n:1\r\n": "a map or set of 2", "~1\r\n:1\r\n": "a map or set of 1", "-ERR x\r\n": "an error: ERR x",
		"!5\r\nERR y\r\n": "an error: ERR y",
		">2\r\n+a\r\n*1\r\n%1\r\n:1\r\n:2\r\n:3\r\n": "an integer 3", "|1\r\n+a\r\n+b\r\n:4\r\n": "an integer 4",
		"-a\x1b\x00b\r\n": "an error: a??b",
	} {
		r := wire.Parse([]byte(raw), &wire.ExpectAny)
		got := r.Kind().String()
		switch r.Kind() {
		case wire.Status, wire.Text:
			got += fmt.Sprintf(" %s %t", r.Str(), r.OK())
		case wire.Number:
			got += fmt.Sprint(" ", r.Int())
		case wire.Array, wire.Map:
			got += fmt.Sprintf(" of %d", len(r.Items()))
		case wire.Refusal:
			got += ": " + r.Err().Error()
		}
		if strings.TrimSuffix(got, " false") != strings.TrimSuffix(want, " false") {
			t.Errorf("%q is %q, want %q (%v)", raw, got, want, r.Err())
		}
	}
}

func TestAReplyBeyondItsBoundIsAnError(t *testing.T) {
	small := wire.Expect{Kinds: wire.Of(wire.Text, wire.Array, wire.Number), Items: 4, Text: 8, Depth: 2}
	for _, raw := range []string{
		"*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "*2\r\n*2\r\n:1\r\n:1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n",
		"$536870913\r\n", "+OK\r\n", "_\r\n",
		":" + strings.Repeat("1", 40) + "\r\n", "+" + strings.Repeat("x", 5000) + "\r\n", ":1\r\n:2\r\n", ":1\r\n\n",
		"$1\r\nx\n\r", "*2\r\n:1\r\n", "$-2\r\n", "=3\r\nabc\r\n",
		"?\r\n", ":1\n", "%9223372036854775807\r\n", "*9223372036854775807\r\n", "-" + strings.Repeat("x", 2<<20) +
			"\r\n",
	} {
		if r := wire.Parse([]byte(raw), &small); !errors.Is(r.Err(), wire.ErrProtocol) || r.Kind() != wire.Failure {
			t.Errorf("%.40q is %v, %v", raw, r.Kind(), r.Err())
		}
	}
	// the control: read past
	if r := wire.Parse([]byte("$9\r\n123456789\r\n"), &small); r.Err() != nil || r.Str() != "" {
		t.Errorf("a text that is too long: %q, %v", r.Str(), r.Err())
	}
}

// FuzzRead: reading any bytes ends without a panic. A reply that is read is of an expected kind, within its bounds.
func FuzzRead(f *testing.F) {
	for _, raw := range []string{
		"+OK\r\n", "-ERR x\r\n", ":1\r\n", "$1\r\nx\r\n", "*2\r\n:1\r\n$1\r\nx\r\n", ">1\r\n:1\r\n:2\r\n",
		"%1\r\n+a\r\n+b\r\n", "$999999999\r\nx", "*1\r\n*1\r\n",
	} {
		f.Add([]byte(raw), uint16(0xffff))
	}
	f.Fuzz(func(t *testing.T, raw []byte, kinds uint16) {
		expect := wire.Expect{Kinds: wire.Kinds(kinds), Items: 16, Text: 32, Depth: 3}
		in := bufio.NewReaderSize(bytes.NewReader(raw), 4096)
		for {
			r, err := wire.Read(in, &expect)
			if err != nil {
				if r.Kind() != wire.Failure {
					t.Fatalf("%v with %v", err, r.Kind())
				}
				return
			}
			if r.Kind() != wire.Refusal && !expect.Kinds.Has(r.Kind()) || count(&r) > 16 || len(r.Str()) > 4096 {
				t.Fatalf("%q: %v of %d", raw, r.Kind(), count(&r))
			}
		}
	})
}

func count(r *wire.Reply) int {
	n := len(r.Items())
	for i := range r.Items() {
		n += count(&r.Items()[i])
	}
	return n
}

// A set-up is one round trip. The connection then has the user, the database and the name of the configuration.
func TestASetUpFollowsTheConfig(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("secret"))
	for _, protocol := range []int{2, 3} {
		config := wire.Config{
			Network: "tcp", Addr: server.Addr(), Protocol: protocol, DB: 3, ClientName: "me",
			Credentials: func(context.Context) (string, string, error) { return "", "secret", nil },
		}
		c, answers, err := config.Dial(within(t, patience), []string{"client", "list"}, []string{"client", "getname"})
		must(t, err)
		if got := answers[0].Str(); !strings.Contains(got, "name=me") || !strings.Contains(got, "db=3") ||
			!strings.Contains(got, fmt.Sprintf("resp=%d", protocol)) {
			t.Errorf("version %d: %s, %v", protocol, got, answers[0].Err())
		}
		if answers[1].Str() != "me" || !c.Clean() {
			t.Errorf("%q, clean %t", answers[1].Str(), c.Clean())
		}
		must(t, c.Close())
		if c.Clean() {
			t.Error("a closed connection is clean")
		}
	}
}

func TestAUnixSocketIsDialled(t *testing.T) {
	server := redistest.Start(t)
	path := server.Client().Options().Addr
	if server.Client().Options().Network != "unix" {
		redistest.NothingTested(t, "the server has no socket")
	}
	c, answers, err := (&wire.Config{Network: "unix", Addr: path}).Dial(within(t, patience), []string{"ping"})
	must(t, err)
	if answers[0].Str() != "PONG" || !c.Clean() {
		t.Errorf("%q", answers[0].Str())
	}
	must(t, c.Close())
}

// A different status is the reply to another command.
func TestOnlyTheExpectedStatusIsAReply(t *testing.T) {
	for raw, want := range map[string]wire.Kind{
		"+OK\r\n": wire.Status, "+QUEUED\r\n": wire.Failure, "+ok\r\n": wire.Failure, "-ERR no\r\n": wire.Refusal,
	} {
		if r := wire.Parse([]byte(raw), &wire.ExpectOK); r.Kind() != want {
			t.Errorf("%q is %v, want %v", raw, r.Kind(), want)
		}
	}
}

// exchangeWith sends one command to a server that answers with all of raw at once.
func exchangeWith(t *testing.T, raw string) (*wire.Conn, wire.Reply) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	c, _, err := (&wire.Config{Network: "tcp", Addr: listener.Addr().String()}).Dial(within(t, patience))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	server, err := listener.Accept()
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		if _, err := server.Read(make([]byte, 1<<10)); err == nil {
			_, _ = io.WriteString(server, raw)
		}
	}()
	must(t, c.SendAndWait(wire.AppendCommand(nil, "ping"), time.Now().Add(patience)))
	reply := c.Reply(&wire.ExpectAny)
	return c, reply
}

// After unasked bytes behind the reply, the connection must not be used again, even if the bytes were read together
// with the reply. The same holds after a malformed reply; nothing more is read then.
func TestAConnectionIsNotUsedAfterUnaskedBytes(t *testing.T) {
	c, reply := exchangeWith(t, "+OK\r\n+OK\r\n")
	if reply.Err() != nil || c.Drained() || c.Clean() || !c.Overfull() {
		t.Errorf("two replies: %v, drained %t, clean %t, overfull %t", reply.Err(), c.Drained(), c.Clean(),
			c.Overfull())
	}
	c, reply = exchangeWith(t, "?\r\n:1\r\n")
	if !errors.Is(reply.Err(), wire.ErrProtocol) || c.Drained() {
		t.Errorf("no reply: %v, drained %t", reply.Err(), c.Drained())
	}
	if next := c.Reply(&wire.ExpectAny); next.Kind() != wire.Failure {
		t.Errorf("behind it: %v", next.Kind())
	}
}

// Bytes that arrive between two requests are noticed before the next request is sent.
func TestAConnectionWithUnreadBytesIsNotClean(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	c, _, err := (&wire.Config{Network: "tcp", Addr: listener.Addr().String()}).Dial(within(t, patience))
	must(t, err)
	defer func() { _ = c.Close() }()
	server, err := listener.Accept()
	must(t, err)
	defer server.Close()
	if !c.Clean() {
		t.Error("nothing was said, and it is not clean")
	}
	_, err = server.Write([]byte("+OK\r\n"))
	must(t, err)
	redistest.Eventually(t, patience, func() bool { return !c.Clean() }, "the word to arrive")
	if !c.Drained() {
		t.Error("drained looks at the socket")
	}
}

// A set-up with wrong replies makes no connection, and the server gets nothing more.
func TestASetUpWithWrongRepliesMakesNoConnection(t *testing.T) {
	for _, reply := range []string{
		"+QUEUED\r\n", "$2\r\nOK\r\n", ":1\r\n", "-ERR no\r\n", "+OK\r\n+OK\r\n+OK\r\n", "*1\r\n+OK\r\n", "",
		"-ERR no\r\n+OK\r\n+PONG\r\n", "+OK\r\n+OK\r\n+PONG\r\n+OK\r\n", "+OK\r\n+OK\r\n",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		ended := make(chan string, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				ended <- err.Error()
				return
			}
			defer conn.Close()
			b := make([]byte, 1<<10)
			n, _ := conn.Read(b)
			_, _ = io.WriteString(conn, reply)
			if reply == "" {
				_ = conn.Close()
			}
			more, _ := conn.Read(b[n:])
			ended <- string(b[n : n+more])
		}()
		c, _, err := (&wire.Config{Network: "tcp", Addr: listener.Addr().String(), DB: 1, ClientName: "me"}).Dial(
			within(t, patience/20),
		)
		if err == nil || c != nil {
			t.Errorf("%q: a connection", reply)
			_ = c.Close()
		}
		if got := <-ended; got != "" {
			t.Errorf("%q: the server got %q", reply, got)
		}
		must(t, listener.Close())
	}
}
