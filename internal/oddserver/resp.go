package oddserver

import (
	"bufio"
	"errors"
	"io"
	"strconv"
)

// errSyntax is what neither go-redis nor a Redis server sends.
var errSyntax = errors.New("oddserver: not Redis's protocol")

// maxPart bounds a word or a field. Both ends are the test's own, so this only has to keep a mistake from being a big
// one.
const maxPart = 64 << 20

// readCommand reads one command: an array of bulk strings. raw has the bytes that were read.
func readCommand(r *bufio.Reader) (words []string, raw []byte, err error) {
	raw, n, err := readHeader(r, nil, '*')
	if err != nil {
		return nil, nil, err
	}
	for range n {
		var size int
		if raw, size, err = readHeader(r, raw, '$'); err != nil {
			return nil, nil, err
		}
		if raw, err = readN(r, raw, size+2); err != nil {
			return nil, nil, err
		}
		words = append(words, string(raw[len(raw)-size-2:len(raw)-2]))
	}
	if len(words) == 0 {
		return nil, nil, errSyntax
	}
	return words, raw, nil
}

func readHeader(r *bufio.Reader, raw []byte, kind byte) ([]byte, int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return raw, 0, err
	}
	if len(line) < 4 || line[0] != kind {
		return raw, 0, errSyntax
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n < 0 || n > maxPart {
		return raw, 0, errSyntax
	}
	return append(raw, line...), n, nil
}

func readN(r *bufio.Reader, raw []byte, n int) ([]byte, error) {
	from := len(raw)
	raw = append(raw, make([]byte, n)...)
	_, err := io.ReadFull(r, raw[from:])
	return raw, err
}

// readReply appends one whole reply of the server behind, of either version of the protocol, as it came.
func readReply(r *bufio.Reader, raw []byte) ([]byte, error) {
	for left := 1; left > 0; left-- {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return raw, err
		}
		raw = append(raw, line...)
		if len(line) < 3 {
			return raw, errSyntax
		}
		n, _ := strconv.Atoi(string(line[1 : len(line)-2])) // 0 for anything that is not a length
		switch line[0] {
		case '*', '~', '>':
			left += max(0, n)
		case '%':
			left += 2 * n
		case '|':
			left += 2*n + 1
		case '$', '=', '!':
			if n >= 0 {
				raw, err = readN(r, raw, n+2)
			}
		}
		if err != nil {
			return raw, err
		}
	}
	return raw, nil
}
