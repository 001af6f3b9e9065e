package single_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// The bytes on our own connections are one command, with exactly the words that go-redis would send.
func TestCommandsAreEncodedAsGoRedisDoes(t *testing.T) {
	for _, r := range requests() {
		encoded, boxed := single.Encode(&r)
		in := bufio.NewReader(bytes.NewReader(encoded))
		words, err := command(in)
		must(t, err)
		want := make([]string, len(boxed))
		for i := range boxed {
			want[i] = fmt.Sprint(boxed[i])
		}
		if _, more := in.Peek(1); !slices.Equal(words, want) || more == nil {
			t.Errorf("%+v is sent as %q, by go-redis as %q", r, encoded, want)
		}
	}
}

func TestEveryRequestIsEncodedInMemoryOfItsSize(t *testing.T) {
	for _, r := range append(requests(), transfer("k", "o", "other", 1)) {
		if room, used := single.EncodedSize(&r); used != room {
			t.Errorf("%+v: room for %d bytes, %d used", r, room, used)
		}
	}
}

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

// A reply that grants nothing is an error, or a refusal. A number grants only if the request's script can return it. An
// error reply, and an array of the wrong form, are answers; the connection stays open.
func TestANumberGrantsOnlyRequestsThatCanReturnIt(t *testing.T) {
	set := acquire("k", "o", time.Second)
	plain, fence, extend, look := polite(set), polite(fenced("k", "o", 0)), extend("k", "o", time.Second, false),
		inspect("k") // by script
	for _, tt := range []struct {
		raw     string
		request single.Request
		isError bool
	}{
		{"-NOSCRIPT No matching script.\r\n", set, true},
		{"-ERR " + strings.Repeat("x", 100_000) + "\r\n", set, true},
		{":0\r\n", plain, true},
		{":2\r\n", plain, true},
		{":17\r\n", plain, true},
		{":0\r\n", fence, true},
		{":-1\r\n", fence, true},
		{":9007199254740992\r\n", fence, true},
		{":1\r\n", extend, true},
		{"*5\r\n:0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:9007199254740992\r\n", plain, true},
		{":1\r\n", look, true},
		{":0\r\n", look, true},
		{"*0\r\n", look, true},
		{"*1\r\n$2\r\nOK\r\n", look, true},
		{"*1\r\n-ERR\r\n", look, true},
		{"*1\r\n+OK\r\n", look, true},
		{"*1\r\n:4\r\n", extend, false},
		{"*1\r\n:-1\r\n", plain, false},
		{"*1\r\n:0\r\n", plain, false},
	} {
		reply, replyErr, err := single.ReadReply(strings.NewReader(tt.raw), &tt.request)
		if err != nil || (replyErr != nil) != tt.isError || reply.Outcome != single.Refused ||
			tt.isError && reply != (single.Reply{}) {
			t.Errorf("%.40q is %+v, %v, %v", tt.raw, reply, replyErr, err)
		}
		if said := redis.Error(nil); tt.raw[0] == '-' && (!errors.As(replyErr, &said) ||
			!strings.HasPrefix(tt.raw[1:], strings.TrimSuffix(replyErr.Error(), "…")) || len(replyErr.Error()) > 300) {
			t.Errorf("%.40q is %.60v", tt.raw, replyErr)
		}
	}
}

// A malformed reply ends the connection, and so does a reply of a kind that the request cannot have.
func TestAMalformedReplyEndsTheConnection(t *testing.T) {
	look := inspect("k")
	for _, raw := range []string{
		"\r\n", "HTTP/1.1 400 Bad Request\r\n", ":1x\r\n", "*9\r\n", "*1\r\n*0\r\n", "$2\r\nOK\r\n", "$-1\r\n", "_\r\n",
		"*-1\r\n", "#t\r\n", "+OK\r\n", "+QUEUED\r\n", ">x\r\n", ",1.5\r\n", "%0\r\n",
	} {
		if _, _, err := single.ReadReply(strings.NewReader(raw), &look); !errors.Is(err, single.ErrProtocol) {
			t.Errorf("%.40q: %v", raw, err)
		}
	}
	for _, raw := range []string{"", "+OK", "$3\r\nab", "*2\r\n:1\r\n", ":1"} {
		_, _, err := single.ReadReply(strings.NewReader(raw), &look)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, and then the end: %v", raw, err)
		}
	}
}
