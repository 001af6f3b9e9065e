// Package garble damages replies of a Redis server on purpose, to test their readers: in millions of ways in one
// process, from a seed. A fuzzer looks for new paths through the code. This package is fast, and its attempts can be
// counted and repeated.
package garble

import (
	"math/rand/v2"
	"strconv"
)

// Source makes damaged replies, always the same from the same seed. Only one goroutine may use it.
type Source struct {
	random *rand.Rand
	whole  []string
}

// New makes a Source that damages the replies in whole, which may be right or wrong.
func New(seed uint64, whole []string) *Source {
	return &Source{random: rand.New(rand.NewPCG(seed, 0x6761726c65)), whole: whole}
}

// fragments are inserted into replies: the beginnings of all types of the protocol, invalid lengths, ends of lines.
var fragments = []string{
	"+OK\r\n", "+", "-ERR x\r\n", "-", ":1\r\n", ":3\r\n", ":0\r\n", ":-1\r\n", ":9007199254740992\r\n",
	":9223372036854775808\r\n", ":", "$2\r\nOK\r\n", "$-1\r\n", "$0\r\n\r\n", "$",
	"*0\r\n", "*1\r\n", "*2\r\n", "*5\r\n", "*-1\r\n", "*999999999\r\n", "*", "%1\r\n", "%", "~2\r\n", ">2\r\n",
	">0\r\n", ">", "|1\r\n+a\r\n:1\r\n", "|0\r\n", "|", "_\r\n", "#t\r\n",
	",1\r\n", ",nan\r\n", "(1\r\n", "!3\r\nERR\r\n", "=6\r\ntxt:OK\r\n", "?\r\n", "$?\r\n", "*?\r\n", ";0\r\n", ".\r\n",
	"\r\n", "\r", "\n", "\x00", "\xff", "-5", "00", "+1", " ",
	"999999999", "2147483648", "4611686018427387905", "$536870912\r\n",
}

// longest bounds a damaged reply.
const longest = 16 << 10

// Next returns the next damaged reply. The caller owns it.
func (s *Source) Next() []byte {
	raw := []byte(s.pick(s.whole))
	for range 1 + s.random.IntN(4)*s.random.IntN(2) {
		if raw = s.spoil(raw); len(raw) > longest {
			raw = raw[:longest]
		}
	}
	return raw
}

// IntN draws a number below n from the same seed, for other decisions of a test.
func (s *Source) IntN(n int) int { return s.random.IntN(n) }

func (s *Source) pick(from []string) string { return from[s.random.IntN(len(from))] }

// spoil makes one change.
func (s *Source) spoil(raw []byte) []byte {
	at := s.random.IntN(len(raw) + 1)
	switch s.random.IntN(9) {
	case 0:
		return splice(raw, at, at, s.pick(fragments))
	case 1: // in place of the old bytes
		piece := s.pick(fragments)
		return splice(raw, at, min(len(raw), at+len(piece)), piece)
	case 2:
		return raw[:at]
	case 3:
		return raw[at:]
	case 4:
		return splice(raw, at, min(len(raw), at+1+s.random.IntN(8)), "")
	case 5: // said twice, or more often
		again := string(raw[at:min(len(raw), at+1+s.random.IntN(32))])
		for range 1 + s.random.IntN(3) {
			raw = splice(raw, at, at, again)
		}
		return raw
	case 6:
		if at < len(raw) {
			raw[at] ^= 1 << s.random.IntN(8)
		}
		return raw
	case 7:
		return s.miscount(raw, at)
	default: // another reply in the middle of it
		return splice(raw, at, at, s.pick(s.whole))
	}
}

// miscount replaces a number, the first one at or behind a place.
func (s *Source) miscount(raw []byte, at int) []byte {
	for at < len(raw) && (raw[at] < '0' || raw[at] > '9') {
		at++
	}
	end := at
	for end < len(raw) && raw[end] >= '0' && raw[end] <= '9' {
		end++
	}
	if at == end {
		return raw
	}
	n, _ := strconv.ParseInt(string(raw[at:end]), 10, 64) // 0 for one that is too great
	switch s.random.IntN(4) {
	case 0:
		n++
	case 1:
		n--
	case 2:
		n = s.random.Int64() >> s.random.IntN(64)
	default:
		n = int64(s.random.IntN(9))
	}
	return splice(raw, at, end, strconv.FormatInt(n, 10))
}

// splice returns raw with the bytes from at to end replaced by piece.
func splice(raw []byte, at, end int, piece string) []byte {
	out := make([]byte, 0, len(raw)-(end-at)+len(piece))
	out = append(out, raw[:at]...)
	out = append(out, piece...)
	return append(out, raw[end:]...)
}
