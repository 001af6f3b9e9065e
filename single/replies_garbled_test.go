package single_test

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/garble"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/single"
)

// asks has requests of every kind that has a granting reply.
func asks() []*single.Request {
	one := []string{"orders:42"}
	return []*single.Request{
		{Op: single.Acquire, Keys: one, Owner: "o", TTL: time.Second},
		{Op: single.Acquire, Keys: one, Owner: "o", TTL: time.Second, Fence: true, Token: 7},
		{Op: single.Acquire, Keys: one, Owner: "o", TTL: time.Second, Waiter: "w", Polite: true},
		{Op: single.Acquire, Keys: []string{"a", "b"}, Owner: "o", TTL: time.Second},
		{Op: single.Acquire, Kind: single.Shared, Keys: one, Owner: "o", Hold: "h", TTL: time.Second},
		{Op: single.Acquire, Kind: single.Exclusive, Keys: one, Owner: "o", Hold: "h", TTL: time.Second},
		{Op: single.Extend, Keys: one, Owner: "o", TTL: time.Second},
		{Op: single.Extend, Keys: one, Owner: "o", TTL: time.Second, Repair: true, Token: 7},
		{Op: single.Extend, Kind: single.Shared, Keys: one, Owner: "o", Hold: "h", TTL: time.Second},
		{Op: single.Release, Keys: one, Owner: "o"},
		{Op: single.Raise, Keys: one, Owner: "o", Token: 7},
		{Op: single.Inspect, Keys: one},
	}
}

// spoken has replies that these requests can get.
var spoken = []string{
	"+OK\r\n", "$-1\r\n", "_\r\n", ":1\r\n", ":0\r\n", ":2\r\n", ":3\r\n", ":1700000000000001\r\n", "*1\r\n:1\r\n",
	"*5\r\n:1\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:7\r\n",
	"*5\r\n:0\r\n:1000\r\n$6\r\nowner3\r\n$9\r\norders:42\r\n:7\r\n", "*1\r\n:2\r\n",
	"*4\r\n:1\r\n:60000\r\n$1\r\no\r\n$9\r\norders:42\r\n",
	"*6\r\n:1\r\n:60000\r\n$1\r\no\r\n$9\r\norders:42\r\n:1\r\n$12\r\n0123456789ab\r\n", "-ERR x\r\n", "-OOM command " +
		"not allowed when used memory > 'maxmemory'.\r\n", "-WRONGTYPE x\r\n",
	"-LOADING Redis is loading the dataset in memory\r\n", "-NOSCRIPT No matching script.\r\n", ":9007199254740993\r\n",
	":-1\r\n", "*2\r\n:1\r\n:-1\r\n",
}

// firstLine is the start of a reply that grants or repairs: a status, a number, or an array with a number as first
// element.
var firstLine = regexp.MustCompile(`^(?:(\+OK)|(\*\d+\r\n)?:(\+?-?\d+))\r\n`)

// mayBe reports whether the bytes could be a reply with this outcome, by a minimal reading of the protocol. Bytes
// with pushes or attributes may be anything.
func mayBe(raw []byte, o single.Outcome) bool {
	if o == single.Refused || bytes.ContainsAny(raw, ">|") {
		return true
	}
	m := firstLine.FindSubmatch(raw)
	if m == nil {
		return false
	}
	if len(m[1]) > 0 {
		return o == single.Granted
	}
	n, err := strconv.ParseInt(string(m[3]), 10, 64)
	if len(m[2]) > 0 {
		return err == nil && (o == single.Granted && (n == 1 || n == 3) || o == single.Repaired && n == 2)
	}
	return err == nil && n > 0 && (o == single.Granted || n == 2)
}

// misread returns the fault in a reply as it was read; "" if there is none.
func misread(raw []byte, reply single.Reply, replyErr, err error) string {
	switch {
	case (err != nil || replyErr != nil) && reply != (single.Reply{}):
		return fmt.Sprintf("%q: %+v with %v, %v", raw, reply, err, replyErr)
	case err == nil && replyErr == nil && !mayBe(raw, reply.Outcome), reply.Token > single.MaxToken:
		return fmt.Sprintf("%q is %+v", raw, reply)
	}
	return ""
}

// TestGarbledReplies: a master may send anything to any request. Only a real grant is taken for one, and an error
// comes without a reply. From a seed, as often as there is time for.
func TestGarbledReplies(t *testing.T) {
	const seed = 2
	source, requests, n := garble.New(seed, spoken), asks(), soak.Or(50_000, 10_000_000)
	var granted, repaired, refused, failed int
	for i := range n {
		raw, r := source.Next(), requests[source.IntN(len(requests))]
		reply, replyErr, err := single.ReadReply(bytes.NewReader(raw), r)
		if fault := misread(raw, reply, replyErr, err); fault != "" {
			t.Fatalf("seed %d, %d: to %+v: %s", seed, i, r, fault)
		}
		switch {
		case err != nil || replyErr != nil:
			failed++
		case reply.Outcome == single.Granted:
			granted++
		case reply.Outcome == single.Repaired:
			repaired++
		default:
			refused++
		}
	}
	if least := n / 1000; granted < least || repaired < least || refused < least || failed < least {
		t.Errorf("granted %d, repaired %d, refused %d, failed %d of %d: this shows little", granted, repaired, refused,
			failed, n)
	}
	t.Logf("granted %d, repaired %d, refused %d, failed %d of %d", granted, repaired, refused, failed, n)
}

// The control: these replies are no grants.
func TestControlRepliesThatGrantNothingAreRecognised(t *testing.T) {
	for _, raw := range []string{
		"", "+QUEUED\r\n", ":0\r\n", ":-1\r\n", "$2\r\nOK\r\n", "*1\r\n$1\r\n1\r\n", "*1\r\n:0\r\n", "*1\r\n:2\r\n",
		"*1\r\n:4\r\n", "#t\r\n", "+OK\n", "-OK\r\n",
	} {
		if misread([]byte(raw), single.Reply{Outcome: single.Granted}, nil, nil) == "" {
			t.Errorf("%q may be a grant", raw)
		}
	}
	if mayBe([]byte(":1\r\n"), single.Repaired) || !mayBe([]byte(":1\r\n"), single.Granted) ||
		!mayBe([]byte("*1\r\n:2\r\n"), single.Repaired) {
		t.Error("a grant is none, or a repair")
	}
	if misread(nil, single.Reply{Holder: "x"}, io.EOF, nil) == "" {
		t.Error("a reply with an error passes")
	}
}

// FuzzReadReply: reading any bytes from a connection ends, without a panic and without more memory than the bytes
// take. Only a reply that says so grants.
func FuzzReadReply(f *testing.F) {
	for _, raw := range append(spoken, "*64\r\n", "$999999999\r\nx", ">1\r\n:1\r\n:2\r\n") {
		for op := range uint8(6) {
			f.Add([]byte(raw), op)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, which uint8) {
		r := asks()[int(which)%len(asks())]
		reply, replyErr, err := single.ReadReply(bytes.NewReader(raw), r)
		if fault := misread(raw, reply, replyErr, err); fault != "" {
			t.Errorf("to %+v: %s", r, fault)
		}
	})
}
