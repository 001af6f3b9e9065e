package single

import (
	"strconv"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file makes commands: arrays of bulk strings.

// appendCommand appends a command in wire format.
func appendCommand(out []byte, args []arg) []byte {
	out = wire.AppendHeader(out, '*', int64(len(args)))
	for i := range args {
		a := &args[i]
		switch {
		case a.prefix != "":
			out = appendBeside(out, a.prefix, a.text)
		case a.hold != nil:
			out = appendHold(out, a.hold)
		case !a.isNumber:
			out = wire.AppendHeader(out, '$', int64(len(a.text)))
			out = append(out, a.text...)
		default:
			var digits [20]byte
			text := strconv.AppendInt(digits[:0], a.number, 10)
			out = wire.AppendHeader(out, '$', int64(len(text)))
			out = append(out, text...)
		}
		out = append(out, '\r', '\n')
	}
	return out
}

// commandSize returns how many bytes [appendCommand] appends.
func commandSize(args []arg) int {
	size := headerSize(len(args))
	for i := range args {
		var n int
		a := &args[i]
		switch {
		case a.prefix != "":
			tag, rest := tagFor(a.text)
			n = len(a.prefix) + len(tag) + len(rest) + len("{}")
		case a.hold != nil:
			n = holdSize(a.hold)
		case a.isNumber:
			n = numberSize(a.number)
		default:
			n = len(a.text)
		}
		size += headerSize(n) + n + len("\r\n")
	}
	return size
}

// headerSize returns the length of a line with a type and a number.
func headerSize(n int) int { return numberSize(int64(n)) + len("$\r\n") }

// numberSize returns how many characters a number has.
func numberSize(n int64) int {
	size := 1
	if n < 0 {
		size++
	}
	for n /= 10; n != 0; n /= 10 {
		size++
	}
	return size
}

// appendBeside appends a name like [beside], without allocating a string.
func appendBeside(out []byte, prefix, key string) []byte {
	tag, rest := tagFor(key)
	out = wire.AppendHeader(out, '$', int64(len(prefix)+len(tag)+len(rest)+2))
	out = append(append(out, prefix...), '{')
	out = append(append(out, tag...), '}')
	return append(out, rest...)
}
