package single

import (
	"strconv"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file makes commands: arrays of bulk strings.

// appendCommand appends a command as it goes over the wire.
func appendCommand(out []byte, args []arg) []byte {
	out = wire.AppendHeader(out, '*', int64(len(args)))
	for i := range args {
		a := &args[i]
		switch {
		case a.prefix != "":
			out = appendBeside(out, a.prefix, a.text)
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

// appendBeside appends what [beside] returns, without making a string of it.
func appendBeside(out []byte, prefix, key string) []byte {
	tag, rest := tagFor(key)
	out = wire.AppendHeader(out, '$', int64(len(prefix)+len(tag)+len(rest)+2))
	out = append(append(out, prefix...), '{')
	out = append(append(out, tag...), '}')
	return append(out, rest...)
}
