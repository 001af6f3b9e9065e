package single

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// This file is what of Redis's protocol a lock needs: commands as arrays of bulk strings, and the replies that SET and
// the scripts give, in version 2 and 3. https://redis.io/docs/latest/develop/reference/protocol-spec/

// appendCommand appends a command as it goes over the wire.
func appendCommand(out []byte, args []arg) []byte {
	out = appendHeader(out, '*', int64(len(args)))
	for i := range args {
		a := &args[i]
		switch {
		case a.prefix != "":
			out = appendBeside(out, a.prefix, a.text)
		case !a.isNumber:
			out = appendHeader(out, '$', int64(len(a.text)))
			out = append(out, a.text...)
		default:
			var digits [20]byte
			text := strconv.AppendInt(digits[:0], a.number, 10)
			out = appendHeader(out, '$', int64(len(text)))
			out = append(out, text...)
		}
		out = append(out, '\r', '\n')
	}
	return out
}

// appendBeside appends what [beside] returns, without making a string of it.
func appendBeside(out []byte, prefix, key string) []byte {
	if hasTag(key) {
		out = appendHeader(out, '$', int64(len(prefix)+len(key)))
		return append(append(out, prefix...), key...)
	}
	out = appendHeader(out, '$', int64(len(prefix)+len(key)+2))
	out = append(append(out, prefix...), '{')
	return append(append(out, key...), '}')
}

func appendHeader(out []byte, kind byte, n int64) []byte {
	out = strconv.AppendInt(append(out, kind), n, 10)
	return append(out, '\r', '\n')
}

// answer is one reply. An array's fields are int64, string or nil.
type answer struct {
	kind   answerKind
	number int64
	fields []any
	err    error // the master's, or the network's: then there is no reply
}

// answerKind is the type of a reply.
type answerKind uint8

const (
	noAnswer answerKind = iota // err is set
	aStatus
	aNumber
	aText
	aNull
	anArray
)

// String names the kind as the protocol does.
func (k answerKind) String() string {
	return [...]string{"nothing", "a simple string", "an integer", "a bulk string", "a null", "an array"}[k]
}

// serverError is an error reply. It matches [redis.Error], as those do that go-redis reads.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (serverError) RedisError() {}

var _ redis.Error = serverError("")

const (
	// maxLine bounds an error reply, which may quote a key.
	maxLine = 1 << 20
	// maxFields bounds an array: the answer to a bundle of releases has one for each.
	maxFields = maxBatch
)

// errProtocol is a reply that no master gives: whatever is at the other end, the connection is of no use any more.
var errProtocol = errors.New("single: not the reply of a Redis server")

func malformed(line []byte) error { return fmt.Errorf("%w: %.64q", errProtocol, line) }

// readAnswer reads one reply. An error means that the connection is of no use any more; the master's own errors are in
// the answer.
func readAnswer(r *bufio.Reader) (answer, error) {
	for {
		line, err := readLine(r)
		if err != nil {
			return answer{}, err
		}
		switch line[0] {
		case '+':
			return answer{kind: aStatus}, nil
		case '-':
			return answer{err: serverError(line[1:])}, nil
		case '*':
			return readArray(r, line)
		case '>': // a push, of version 3: not for us
			if _, err := readArray(r, line); err != nil {
				return answer{}, err
			}
			continue
		}
		value, err := readScalar(r, line)
		switch value := value.(type) {
		case int64:
			return answer{kind: aNumber, number: value}, err
		case string:
			return answer{kind: aText}, err
		default:
			return answer{kind: aNull}, err
		}
	}
}

// readLine reads a line, without its end; it has at least one byte. It is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		var whole []byte
		for errors.Is(err, bufio.ErrBufferFull) && len(whole) < maxLine {
			whole = append(whole, line...)
			line, err = r.ReadSlice('\n')
		}
		line = append(whole, line...)
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, malformed(line)
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, malformed(line)
	}
	return line[:len(line)-2], nil
}

// readArray reads the fields that a line announces.
func readArray(r *bufio.Reader, line []byte) (answer, error) {
	n, ok := parseNumber(line[1:])
	switch {
	case !ok || n < -1 || n > maxFields:
		return answer{}, malformed(line)
	case n == -1:
		return answer{kind: aNull}, nil
	}
	fields := make([]any, n)
	for i := range fields {
		line, err := readLine(r)
		if err == nil {
			fields[i], err = readScalar(r, line)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return answer{kind: anArray, fields: fields}, nil
}

// readScalar reads what is neither an array nor an error nor a simple string: int64, string or nil.
func readScalar(r *bufio.Reader, line []byte) (any, error) {
	if line[0] == '_' && len(line) == 1 {
		return nil, nil //nolint:nilnil // a null is a value
	}
	n, ok := parseNumber(line[1:])
	switch {
	case ok && line[0] == ':':
		return n, nil
	case ok && line[0] == '$' && n >= 0:
		return readText(r, n)
	case ok && line[0] == '$' && n == -1:
		return nil, nil //nolint:nilnil // a null is a value
	default:
		return nil, malformed(line)
	}
}

// readText reads n bytes and the line's end. The length is the server's word, so memory is taken as bytes arrive.
func readText(r *bufio.Reader, n int64) (string, error) {
	const trusted = 64 << 10
	if n > trusted {
		raw, err := io.ReadAll(io.LimitReader(r, n))
		if err == nil && int64(len(raw)) < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		return string(raw), readEnd(r)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r, raw); err != nil {
		return "", err
	}
	return string(raw), readEnd(r)
}

func readEnd(r *bufio.Reader) error {
	var end [2]byte
	if _, err := io.ReadFull(r, end[:]); err != nil {
		return err
	}
	if end != [2]byte{'\r', '\n'} {
		return malformed(end[:])
	}
	return nil
}

// parseNumber reads a decimal number without making a string of it.
func parseNumber(digits []byte) (n int64, ok bool) {
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
