// Package wire is a connection to one Redis server, from its first byte: dialling, TLS, credentials, pipelines and
// subscriptions. It knows nothing of locks.
//
// What it promises to those who count replies as votes:
//
//   - A [Reply] says what the server has sent for one command, and only reading makes one. Its zero value is "not read",
//     which is an error; so is whatever went wrong before or instead.
//   - Each command says what it can be answered with ([Expect]): kinds, number of elements, length of a text. Anything else
//     ends the connection. Memory is taken as bytes arrive, and never more than that.
//   - A [Conn] exists once every reply of its set-up was read and is what it should be. Nothing of a request is written
//     before.
//   - A connection may be used again only when it is [Conn.Clean]: all that came was read as the reply to something.
//   - Closing a TCP connection resets it and drops what the kernel has not delivered, if a Dialer has not hidden it; see
//     [ResetOnClose].
//
// What it does not promise: a server that sends bytes after Clean has looked and before its reply to the next command can
// pass them off as that reply. A pipeline that ends with [LastCommand] notices; a command by itself does not. The protocol
// numbers nothing; a server that lies is one vote, as it always is.
//
// A Conn is used by one goroutine at a time; the rest is safe for concurrent use.
package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrUnread says that there is no reply, because nothing was read.
var ErrUnread = errors.New("no reply was read")

// ErrProtocol is matched by the error of a reply that the command can't have: whatever is at the other end, the connection
// is of no use any more.
var ErrProtocol = errors.New("not a reply of a Redis server to this")

func malformed(line []byte) error { return fmt.Errorf("%w: %.64q", ErrProtocol, line) }

// ServerError is an error reply, its text bounded and printable. It matches go-redis's Error interface.
type ServerError string

// maxErrorText is how much of an error reply is kept.
const maxErrorText = 256

// newServerError keeps what can be shown of an error reply.
func newServerError(text []byte) ServerError {
	tail := ""
	if len(text) > maxErrorText {
		text, tail = text[:maxErrorText], "…"
	}
	printable := strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(text), "?"))
	return ServerError(printable + tail)
}

func (e ServerError) Error() string { return string(e) }

// RedisError implements go-redis's Error.
func (ServerError) RedisError() {}

// Kind is what a Reply is.
type Kind uint8

// The kinds.
const (
	Unread  Kind = iota // nothing was read; also the zero value
	Failure             // something went wrong on the way
	Refusal             // an error reply
	Status              // a simple string
	Number              // an integer
	Text                // a bulk or verbatim string
	Null                // a null of any kind
	Array               // an array
	Map                 // a map, as its keys and values in turn, or a set
	Other               // a boolean, a double, or a big number
	Push                // what the server says unasked, as an array
)

// String names the kind as the protocol does.
func (k Kind) String() string {
	return [...]string{
		"nothing", "a failure", "an error", "a simple string", "an integer", "a bulk string", "a null", "an array", "a map or set",
		"a value of another kind", "a push",
	}[k]
}

// Reply is the reply to one command, or why there is none.
type Reply struct {
	kind   Kind
	number int64
	text   string // of a Text, a Status, an Other
	items  []Reply
	err    error
}

// Failed is a reply that was not read because of err.
func Failed(err error) Reply {
	if err == nil {
		return Reply{}
	}
	return Reply{kind: Failure, err: err}
}

// Kind says what the reply is.
func (r *Reply) Kind() Kind { return r.kind }

// Err is why there is no value: [ErrUnread], what went wrong, or the server's own error, a [ServerError].
func (r *Reply) Err() error {
	if r.kind == Unread {
		return ErrUnread
	}
	return r.err
}

// Refused reports that this is an error reply to this very command, and that it begins with prefix.
func (r *Reply) Refused(prefix string) bool {
	return r.kind == Refusal && strings.HasPrefix(strings.TrimPrefix(r.err.Error(), "ERR "), prefix)
}

// OK reports the status OK, and nothing that looks like it.
func (r *Reply) OK() bool { return r.kind == Status && r.text == ok }

// Int is the number of a Number; 0 for other kinds.
func (r *Reply) Int() int64 { return r.number }

// Str is the text of a Text or Status. It is empty for other kinds, and for a Text that was longer than expected.
func (r *Reply) Str() string { return r.text }

// Items are the elements of an Array, Map or Push.
func (r *Reply) Items() []Reply { return r.items }

const ok = "OK"

// Kinds is a set of kinds.
type Kinds uint16

// Of makes a set.
func Of(kinds ...Kind) Kinds {
	var set Kinds
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has reports that the set has k.
func (s Kinds) Has(k Kind) bool { return s>>k&1 == 1 }

// Expect says what a command can be answered with, beside an error.
type Expect struct {
	// Kinds are what the reply may be.
	Kinds Kinds
	// Status is what a simple string must say; "" for anything. One that says something else is the reply to another command,
	// and so may be all that follow.
	Status string
	// Items bounds the elements of an array, those of arrays within it included.
	Items int
	// Text bounds a text in bytes. One that is longer is read past and kept as an empty one: it can't be what was asked for.
	Text int
	// Depth is how deep arrays may be nested: 0 and 1 mean that they are not.
	Depth int
}

// The expectations of commands that are no requests of a lock.
var (
	// ExpectOK is of commands that say OK or an error.
	ExpectOK = Expect{Kinds: Of(Status), Status: ok}
	// ExpectAny is of commands that tell something: INFO server, CONFIG GET, HELLO. A reply takes 32 MB at most.
	ExpectAny = Expect{Kinds: Of(Status, Number, Text, Null, Array, Map, Other), Items: 512, Text: 64 << 10, Depth: 6}
)

// AppendCommand appends a command as it goes over the wire.
func AppendCommand(out []byte, words ...string) []byte {
	out = AppendHeader(out, '*', int64(len(words)))
	for _, word := range words {
		out = append(append(AppendHeader(out, '$', int64(len(word))), word...), '\r', '\n')
	}
	return out
}

// AppendHeader appends a line of a type and a number.
func AppendHeader(out []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(out, kind), n, 10), '\r', '\n')
}
