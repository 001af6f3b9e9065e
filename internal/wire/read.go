package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// This file reads replies, in versions 2 and 3 of the protocol:
// https://redis.io/docs/latest/develop/reference/protocol-spec/

const (
	// bufferSize holds the usual replies to a full batch.
	bufferSize = 4 << 10
	// maxNumber bounds a line with a number, as headers have.
	maxNumber = 32
	// maxLine bounds an error, which may quote a key. Only its beginning is kept.
	maxLine = 1 << 20
	// maxBulk is the longest string that a server can have.
	maxBulk = 512 << 20
	// trusted is the longest text for which memory is allocated before the bytes arrive.
	trusted = 16 << 10
)

// reader reads replies from a connection.
type reader struct {
	in *bufio.Reader
	// left is how many more elements the reply may have.
	left int
}

// reply reads the reply to one command, and skips messages that the server sends unasked before it. An error, which
// is also in the reply, means that the connection cannot be used any more. Error replies of the server are only in
// the reply.
func (r *reader) reply(expect *Expect) (Reply, error) {
	for {
		line, err := r.line()
		if err != nil {
			return Failed(err), err
		}
		if line[0] == '>' || line[0] == '|' {
			r.left = skipped.Items
			if _, err := r.items(line, &skipped, skipped.Depth); err != nil {
				return Failed(err), err
			}
			continue
		}
		r.left = expect.Items
		got, err := r.value(line, expect, max(1, expect.Depth))
		if err == nil && !expect.admits(&got) {
			err = malformed(append([]byte(got.kind.String()+" "), got.text...))
		}
		if err != nil {
			return Failed(err), err
		}
		return got, nil
	}
}

// admits reports whether a reply is possible for the command. An error reply always is.
func (e *Expect) admits(got *Reply) bool {
	if got.kind == Refusal {
		return true
	}
	return e.Kinds.Has(got.kind) && (got.kind != Status || e.Status == "" || got.text == e.Status)
}

// skipped bounds a push that is read and dropped.
var skipped = Expect{Items: 16384, Text: 0, Depth: 8}

// frame reads the next frame from the server, which may be a push.
func (r *reader) frame(expect *Expect) (Reply, error) {
	line, err := r.line()
	if err != nil {
		return Failed(err), err
	}
	r.left = expect.Items
	return r.value(line, expect, max(1, expect.Depth))
}

// value reads the value that begins with line. depth is how deep arrays may be nested.
func (r *reader) value(line []byte, expect *Expect, depth int) (Reply, error) {
	switch rest := line[1:]; line[0] {
	case '+':
		if string(rest) == ok {
			return Reply{kind: Status, text: ok}, nil
		}
		return Reply{kind: Status, text: string(rest)}, nil
	case '-':
		return Reply{kind: Refusal, err: newServerError(rest)}, nil
	case ':':
		if n, isNumber := parseNumber(rest); isNumber {
			return Reply{kind: Number, number: n}, nil
		}
	case '_':
		if len(rest) == 0 {
			return Reply{kind: Null}, nil
		}
	case ',', '#', '(':
		return Reply{kind: Other, text: string(rest)}, nil
	case '$', '=', '!':
		return r.bulk(line, expect)
	case '*', '~', '%', '>':
		return r.items(line, expect, depth)
	}
	return Reply{}, malformed(line)
}

// bulk reads a text, or an error in the form of a text.
func (r *reader) bulk(line []byte, expect *Expect) (Reply, error) {
	kind := line[0]
	n, isNumber := parseNumber(line[1:])
	switch {
	case isNumber && n == -1:
		return Reply{kind: Null}, nil
	case !isNumber || n < 0 || n > maxBulk || kind == '=' && n < 4:
		return Reply{}, malformed(line)
	}
	limit := expect.Text
	if kind == '!' {
		limit = maxErrorText
	}
	text, err := r.text(n, limit)
	switch {
	case err != nil:
		return Reply{}, err
	case kind == '!':
		return Reply{kind: Refusal, err: newServerError([]byte(text))}, nil
	case kind == '=' && text != "":
		text = text[4:]
	}
	return Reply{kind: Text, text: text}, nil
}

// items reads the elements that a line announces.
func (r *reader) items(line []byte, expect *Expect, depth int) (Reply, error) {
	kind := Array
	switch line[0] {
	case '>':
		kind = Push
	case '%', '~':
		kind = Map
	}
	n, isNumber := parseNumber(line[1:])
	if isNumber && n == -1 {
		return Reply{kind: Null}, nil
	}
	if !isNumber || n < 0 || n > int64(r.left) || depth == 0 {
		return Reply{}, malformed(line)
	}
	if line[0] == '%' || line[0] == '|' {
		if n *= 2; n > int64(r.left) {
			return Reply{}, malformed(line)
		}
	}
	r.left -= int(n)
	items := make([]Reply, n)
	for i := range items {
		line, err := r.line()
		if err != nil {
			return Reply{}, err
		}
		if items[i], err = r.value(line, expect, depth-1); err != nil {
			return Reply{}, err
		}
	}
	return Reply{kind: kind, items: items}, nil
}

// line reads a line, without its end; it has at least one byte. It is valid until the next read. Of a long error only
// the beginning is returned.
func (r *reader) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		if line[0] != '-' {
			return nil, malformed(line)
		}
		return r.longError(bytes.Clone(line[:maxErrorText+2]), len(line))
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, malformed(line)
	}
	line = line[:len(line)-2]
	if len(line) > maxNumber && bytes.IndexByte([]byte("-+,("), line[0]) < 0 {
		return nil, malformed(line)
	}
	return line, nil
}

// longError reads to the end of an error that begins with head.
func (r *reader) longError(head []byte, n int) ([]byte, error) {
	for n < maxLine {
		more, err := r.in.ReadSlice('\n')
		if err == nil {
			return head, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		n += len(more)
	}
	return nil, malformed(head)
}

// text reads n bytes and the line's end, and returns the bytes if they are within the limit. The length is only the
// server's claim, so memory is allocated as bytes arrive.
func (r *reader) text(n int64, limit int) (string, error) {
	if n > int64(limit) {
		for left := n; left > 0; {
			part := int(min(left, trusted))
			if _, err := r.in.Discard(part); err != nil {
				return "", err
			}
			left -= int64(part)
		}
		return "", r.end()
	}
	var raw []byte
	if n <= trusted {
		raw = make([]byte, n)
		if _, err := io.ReadFull(r.in, raw); err != nil {
			return "", err
		}
		return string(raw), r.end()
	}
	raw, err := io.ReadAll(io.LimitReader(r.in, n))
	if err == nil && int64(len(raw)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	return string(raw), r.end()
}

func (r *reader) end() error {
	var end [2]byte
	if _, err := io.ReadFull(r.in, end[:]); err != nil {
		return err
	}
	if end != [2]byte{'\r', '\n'} {
		return malformed(end[:])
	}
	return nil
}

// parseNumber parses a decimal number without allocating a string.
func parseNumber(digits []byte) (n int64, valid bool) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
		if n < 0 {
			return 0, false
		}
	}
	if negative {
		n = -n
	}
	return n, true
}

// Read reads one reply, and skips messages that the server sends unasked before it. After an error nothing more can
// be read.
func Read(in *bufio.Reader, expect *Expect) (Reply, error) {
	r := reader{in: in}
	return r.reply(expect)
}

// Parse parses one reply, which must be all of raw. For an empty raw it returns an unread reply.
func Parse(raw []byte, expect *Expect) Reply {
	if len(raw) == 0 {
		return Reply{}
	}
	from := bytes.NewReader(raw)
	in := bufio.NewReaderSize(from, bufferSize)
	reply, err := Read(in, expect)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err == nil &&
		(from.Len() > 0 || in.Buffered() > 0):
		return Failed(malformed(raw))
	case err != nil:
		return Failed(err)
	default:
		return reply
	}
}
