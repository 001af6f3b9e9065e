package single_test

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

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// requests has one request of each form that a command can take.
func requests() []single.Request {
	return []single.Request{
		{Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: 1500 * time.Microsecond, Fence: true,
			Token: single.MaxToken,
		},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: 1500 * time.Microsecond, Fence: true,
			Retained: true,
			Token:    7,
		},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Fence: true, Retained: true,
			Exact: true, Token: 7,
		},
		{Op: single.Acquire, Keys: []string{"a{x}", "b{x}"}, Owner: "ö\r\n$1\r\n\x00", TTL: time.Hour},
		{
			Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Waiter: "w", Waited: time.Minute,
			Polite: true,
		},
		{
			Op: single.Acquire, Kind: single.Shared, Keys: []string{"k"}, Owner: "o", Hold: "h", TTL: time.Second,
			Within: "i",
		},
		{Op: single.Extend, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Repair: true, Token: 7},
		{Op: single.Extend, Kind: single.Exclusive, Keys: []string{"k"}, Owner: "o", Hold: "h", TTL: time.Second},
		{Op: single.Release, Keys: []string{"k"}, Owner: "o", Reserve: 5 * time.Millisecond},
		{Op: single.Release, Keys: []string{"k", "l"}, Owner: "o", Waiter: "w"},
		{Op: single.Release, Keys: []string{"k", "l"}, Owner: "o", Keep: time.Minute},
		{Op: single.Release, Kind: single.Shared, Keys: []string{"k"}, Owner: "o", Hold: "h"},
		{Op: single.Raise, Keys: []string{"k"}, Owner: "o", Token: 9},
		{Op: single.Inspect, Keys: []string{strings.Repeat("k", 70_000)}},
		{Op: single.Leave, Keys: []string{"k"}, Waiter: "w"},
	}
}

// The bytes on our own connections are exactly those that go-redis would send.
func TestCommandsAreEncodedAsGoRedisDoes(t *testing.T) {
	var sent bytes.Buffer
	client := redis.NewClient(&redis.Options{
		DisableIdentity: true, Protocol: 2, MaxRetries: -1, ContextTimeoutEnabled: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return &recorder{sent: &sent}, nil },
	})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Ping(t.Context()).Err(); err != nil { // the connection is set up
		t.Fatal(err)
	}
	for _, r := range requests() {
		encoded, boxed := single.Encode(&r)
		sent.Reset()
		if err := client.Do(t.Context(), boxed...).Err(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded, sent.Bytes()) {
			t.Errorf("%+v is sent as %q, by go-redis as %q", r, encoded, sent.Bytes())
		}
	}
}

// recorder is a connection to an old server, without HELLO, that says +OK to everything else.
type recorder struct {
	net.Conn // nil: the other methods are not used
	sent     *bytes.Buffer
	owed     string
}

func (c *recorder) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("hello")) {
		c.owed = "-ERR unknown command\r\n"
	} else {
		c.owed = "+OK\r\n" // one, in however many pieces the command comes
	}
	return c.sent.Write(b)
}

func (c *recorder) Read(b []byte) (int, error) {
	if c.owed == "" {
		return 0, io.EOF
	}
	n := copy(b, c.owed)
	c.owed = c.owed[n:]
	return n, nil
}

func (*recorder) Close() error                     { return nil }
func (*recorder) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*recorder) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*recorder) SetDeadline(time.Time) error      { return nil }
func (*recorder) SetReadDeadline(time.Time) error  { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

func TestRepliesAreDecoded(t *testing.T) {
	set := single.Request{Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second}
	fence := single.Request{
		Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Fence: true, Polite: true,
	}
	release := single.Request{Op: single.Release, Keys: []string{"k"}, Owner: "o"}
	inspect := single.Request{Op: single.Inspect, Keys: []string{"k"}}
	granted := single.Reply{Outcome: single.Granted}
	long := strings.Repeat("x", 300_000)
	for _, tt := range []struct {
		raw     string
		request single.Request
		want    single.Reply
	}{
		{"+OK\r\n", set, granted},
		{":17\r\n", fence, single.Reply{Outcome: single.Granted, Token: 17}},
		{":9007199254740991\r\n", fence, single.Reply{Outcome: single.Granted, Token: single.MaxToken}},
		{":1\r\n", release, granted},
		{":3\r\n", release, single.Reply{Outcome: single.Granted, Called: true}},
		{":0\r\n", release, single.Reply{}},
		{">2\r\n$10\r\ninvalidate\r\n_\r\n:1\r\n", release, granted},
		{"*1\r\n:0\r\n", inspect, single.Reply{}},
		{"*3\r\n:0\r\n:-2\r\n$1\r\no\r\n", inspect, single.Reply{TTL: -2 * time.Millisecond, Holder: "o"}},
		{"*5\r\n:1\r\n:1500\r\n$0\r\n\r\n$2\r\n\r\n\r\n:4\r\n", inspect, single.Reply{
			Outcome: single.Granted, TTL: 1500 * time.Millisecond, Key: "\r\n", Token: 4,
		}},
		// too long for a name
		{fmt.Sprintf("*3\r\n:0\r\n:1\r\n$%d\r\n%s\r\n", len(long), long), inspect, single.Reply{TTL: time.Millisecond}},
	} {
		in := bufio.NewReader(io.MultiReader(strings.NewReader(tt.raw), strings.NewReader(":1\r\n")))
		reply, replyErr, err := single.ReadReply(in, &tt.request)
		if err != nil || replyErr != nil || reply != tt.want {
			t.Errorf("%.80q to %+v is %+v, %v, %v", tt.raw, tt.request, reply, replyErr, err)
		}
		if next, _, err := single.ReadReply(in, &release); err != nil || next != granted {
			t.Errorf("after %.80q comes %+v, %v", tt.raw, next, err)
		}
	}
}

// An error reply, and an array of the wrong form, are answers; the connection stays open.
func TestRepliesThatGrantNothing(t *testing.T) {
	set := single.Request{Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second}
	long := strings.Repeat("x", 100_000)
	for _, raw := range []string{
		"-NOSCRIPT No matching script.\r\n", "-ERR " + long + "\r\n", ":1\r\n", ":0\r\n", "*0\r\n",
		"*1\r\n$2\r\nOK\r\n",
		"*1\r\n-ERR\r\n", "*1\r\n+OK\r\n",
	} {
		request := set
		if raw[0] != '-' {
			request = single.Request{Op: single.Inspect, Keys: []string{"k"}}
		}
		reply, replyErr, err := single.ReadReply(strings.NewReader(raw), &request)
		if err != nil || replyErr == nil || reply != (single.Reply{}) {
			t.Errorf("%.40q is %+v, %v, %v", raw, reply, replyErr, err)
		}
		if raw[0] == '-' {
			if redisErr := redis.Error(nil); !errors.As(replyErr, &redisErr) ||
				!strings.HasPrefix(raw[1:], strings.TrimSuffix(replyErr.Error(), "…")) || len(replyErr.Error()) > 300 {
				t.Errorf("%.40q is %.60v", raw, replyErr)
			}
		}
	}
}

// A number grants nothing if the request's script cannot return it.
func TestANumberGrantsOnlyRequestsThatCanReturnIt(t *testing.T) {
	// by script
	plain := single.Request{Op: single.Acquire, Keys: []string{"k"}, Owner: "o", TTL: time.Second, Polite: true}
	fence := plain
	fence.Fence = true
	extend := single.Request{Op: single.Extend, Keys: []string{"k"}, Owner: "o", TTL: time.Second}
	for _, tt := range []struct {
		raw     string
		request single.Request
		isError bool
	}{
		{":0\r\n", plain, true},
		{":2\r\n", plain, true},
		{":17\r\n", plain, true},
		{":0\r\n", fence, true},
		{":-1\r\n", fence, true},
		{":9007199254740992\r\n", fence, true},
		{":1\r\n", extend, true},
		{"*5\r\n:0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:9007199254740992\r\n", plain, true},
		{"*1\r\n:4\r\n", extend, false},
		{"*1\r\n:-1\r\n", plain, false},
		{"*1\r\n:0\r\n", plain, false},
	} {
		reply, replyErr, err := single.ReadReply(strings.NewReader(tt.raw), &tt.request)
		if err != nil || (replyErr != nil) != tt.isError || reply.Outcome != single.Refused {
			t.Errorf("%q is %+v, %v, %v", tt.raw, reply, replyErr, err)
		}
	}
}

func TestAMalformedReplyEndsTheConnection(t *testing.T) {
	for _, raw := range []string{
		"\r\n", "\n", "+\n", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":1x\r\n", ":--1\r\n",
		":99999999999999999999\r\n", ":9999999999999999999\r\n",
		"$-2\r\n", "$3\r\nabcd\r\n", "$x\r\n", "*-2\r\n", "*9\r\n", "*1\r\n*0\r\n", "$2\r\nOK\r\n", "$-1\r\n", "_\r\n",
		"*-1\r\n", "#t\r\n", "+OK\r\n", "+QUEUED\r\n", ">x\r\n", ",1.5\r\n", "%0\r\n",
		"-ERR " + strings.Repeat("x", 2<<20) + "\r\n",
	} {
		_, _, err := single.ReadReply(strings.NewReader(raw), &single.Request{Op: single.Inspect, Keys: []string{"k"}})
		if !errors.Is(err, single.ErrProtocol) {
			t.Errorf("%.40q: %v", raw, err)
		}
	}
	for _, raw := range []string{"", "+OK", "$3\r\nab", "$3\r\nabc", "$100000\r\nab", "*2\r\n:1\r\n", ":1"} {
		_, _, err := single.ReadReply(strings.NewReader(raw), &single.Request{Op: single.Inspect, Keys: []string{"k"}})
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, and then the end: %v", raw, err)
		}
	}
}

// FuzzReadReply: reading any bytes from a connection ends, without a panic and without more memory than the bytes
// take. Only a reply that says so grants.
func FuzzReadReply(f *testing.F) {
	for _, raw := range []string{
		"+OK\r\n", "-ERR x\r\n", ":1\r\n", "$1\r\nx\r\n", "$-1\r\n", "_\r\n", "*2\r\n:1\r\n$1\r\nx\r\n",
		">1\r\n:1\r\n:2\r\n", "*64\r\n", "$999999999\r\nx",
	} {
		for op := range uint8(6) {
			f.Add([]byte(raw), op)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, op uint8) {
		request := single.Request{Op: single.Op(op % 6), Keys: []string{"k"}, Owner: "o", TTL: time.Second}
		reply, replyErr, err := single.ReadReply(bytes.NewReader(raw), &request)
		if (err != nil || replyErr != nil) && reply != (single.Reply{}) {
			t.Errorf("%q: an error with a reply: %+v, %v, %v", raw, reply, replyErr, err)
		}
		if reply.Outcome == single.Granted && !bytes.ContainsAny(raw, "+13") {
			t.Errorf("%q grants", raw)
		}
	})
}

func TestEveryRequestIsEncodedInMemoryOfItsSize(t *testing.T) {
	key, owner := "orders:{42}:invoice", "0123456789abcdef0123456789abcdef"
	several := acquire(key, owner, time.Hour)
	several.Keys = []string{"a", strings.Repeat("long", 300), "c}{"}
	held := reader(owner, "1", time.Minute)
	held.Within = "2"
	for name, r := range map[string]single.Request{
		"acquire": acquire(key, owner, 10*time.Second), "release": release(key, owner),
		"fenced":           fenced(key, owner, 1_795_000_000_000_000),
		"retained":         retained(fenced(key, owner, 1_795_000_000_000_000)),
		"extend":           extend(key, owner, 10*time.Second, true),
		"waiter":           by("0123456789abcdef0123456789abcdef", time.Second, acquire(key, owner, 10*time.Second)),
		"waiter's release": by("0123456789abcdef0123456789abcdef", 0, release(key, owner)),
		"several keys":     several, "their extension": as(single.Extend, several),
		"their release": as(single.Release, several),
		"reader":        held, "reader's release": as(single.Release, held),
		"reader's extension": as(single.Extend, held),
		"writer":             writer(owner, "1", time.Minute), "raise": {
			Op: single.Raise, Keys: []string{key}, Owner: owner, Token: 1,
		},
		"claim": transfer(key, owner, "other", 1),
		"leave": {Op: single.Leave, Keys: []string{key}, Waiter: "w"}, "inspect": inspect(key),
	} {
		if room, used := single.EncodedSize(&r); used != room {
			t.Errorf("%s: room for %d bytes, %d used", name, room, used)
		}
	}
}
