// Package wire is a connection to one Redis server, from its first byte: dialling, TLS, credentials, pipelines and
// subscriptions. It knows nothing of locks.
//
// It promises to callers that count replies as votes:
//
//   - A [Reply] is the server's reply to one command, and only reading makes one. Its zero value is "not read", which
//     is an error. Any failure before or during the read is an error, too.
//   - Each command says which replies it can have ([Expect]): kinds, number of elements, length of a text. Any other
//     reply ends the connection. Memory is allocated as bytes arrive, and never more than that.
//   - A [Conn] exists only after every reply of its set-up was read and was right. No byte of a request is written
//     before.
//   - A connection may be used again only when it is [Conn.Clean]: all bytes that came were read as replies.
//   - Closing a TCP connection resets it and drops the bytes that the kernel has not delivered, unless a Dialer hides
//     the connection; see [ResetOnClose].
//
// It does not promise this: a server that sends bytes after Clean has looked, and before its reply to the next
// command, can pass them off as that reply. A pipeline that ends with [LastCommand] notices it; a single command does
// not. The protocol numbers nothing. A server that lies is one vote, as always.
//
// Only one goroutine may use a Conn at a time. Everything else is safe for concurrent use.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrUnread says that there is no reply, because none was read.
var ErrUnread = errors.New("no reply was read")

// ErrProtocol matches the error of a reply that the command cannot have. Whatever the other end is, the connection
// can no longer be used.
var ErrProtocol = errors.New("not a reply of a Redis server to this")

// errAlert is what a TLS port answers to a command.
var errAlert = fmt.Errorf("%w: a TLS alert", ErrProtocol)

func malformed(line []byte) error {
	if bytes.HasPrefix(line, []byte("\x15\x03")) {
		return errAlert
	}
	return fmt.Errorf("%w: %.64q", ErrProtocol, line)
}

// ServerError is an error reply, its text bounded and printable. It matches go-redis's Error interface.
type ServerError string

// maxErrorText is how much of an error reply is kept.
const maxErrorText = 256

// newServerError keeps the printable beginning of an error reply.
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

// Kind is the kind of a Reply.
type Kind uint8

// The kinds.
const (
	Unread  Kind = iota // nothing was read; also the zero value
	Failure             // a failure on the way
	Refusal             // an error reply
	Status              // a simple string
	Number              // an integer
	Text                // a bulk or verbatim string
	Null                // a null of any kind
	Array               // an array
	Map                 // a map, as its keys and values in turn, or a set
	Other               // a boolean, a double, or a big number
	Push                // a message that the server sends unasked, as an array
)

// String returns the kind's name in the protocol.
func (k Kind) String() string {
	return [...]string{
		"nothing", "a failure", "an error", "a simple string", "an integer", "a bulk string", "a null", "an array",
		"a map or set",
		"a value of another kind", "a push",
	}[k]
}

// Reply is the reply to one command, or the reason why there is none.
type Reply struct {
	kind   Kind
	number int64
	text   string // of a Text, a Status, an Other
	items  []Reply
	err    error
}

// Failed returns a reply that was not read because of err.
func Failed(err error) Reply {
	if err == nil {
		return Reply{}
	}
	return Reply{kind: Failure, err: err}
}

// Kind returns the reply's kind.
func (r *Reply) Kind() Kind { return r.kind }

// Err returns why there is no value: [ErrUnread], a failure, or the server's own error, a [ServerError].
func (r *Reply) Err() error {
	if r.kind == Unread {
		return ErrUnread
	}
	return r.err
}

// Refused reports whether this is an error reply to this very command, and begins with prefix.
func (r *Reply) Refused(prefix string) bool {
	return r.kind == Refusal && strings.HasPrefix(strings.TrimPrefix(r.err.Error(), "ERR "), prefix)
}

// OK reports whether this is exactly the status OK.
func (r *Reply) OK() bool { return r.kind == Status && r.text == ok }

// Int returns the number of a Number; 0 for other kinds.
func (r *Reply) Int() int64 { return r.number }

// Str returns the text of a Text or Status. It is empty for other kinds, and for a Text that was longer than
// expected.
func (r *Reply) Str() string { return r.text }

// Items returns the elements of an Array, Map or Push.
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

// Expect describes the possible replies to a command. An error reply is always possible.
type Expect struct {
	// Kinds are the possible kinds.
	Kinds Kinds
	// Status is the text that a simple string must have; "" for any text. A different text is the reply to another
	// command, and all later replies may be misaligned, too.
	Status string
	// Items bounds the elements of an array, including elements of arrays within it.
	Items int
	// Text bounds a text in bytes. A longer text cannot be the answer: it is skipped and kept as an empty one.
	Text int
	// Depth is how deep arrays may be nested. 0 and 1 mean no nesting.
	Depth int
}

// These are for commands that are not requests of a lock.
var (
	// ExpectOK is for commands that reply OK or an error.
	ExpectOK = Expect{Kinds: Of(Status), Status: ok}
	// ExpectAny is for commands with an answer: INFO server, CONFIG GET, HELLO. A reply takes 32 MB at most.
	ExpectAny = Expect{Kinds: Of(Status, Number, Text, Null, Array, Map, Other), Items: 512, Text: 64 << 10, Depth: 6}
)

// AppendCommand appends a command in wire format.
func AppendCommand(out []byte, words ...string) []byte {
	out = AppendHeader(out, '*', int64(len(words)))
	for _, word := range words {
		out = append(append(AppendHeader(out, '$', int64(len(word))), word...), '\r', '\n')
	}
	return out
}

// AppendHeader appends a line with a type and a number.
func AppendHeader(out []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(out, kind), n, 10), '\r', '\n')
}
