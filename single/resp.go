package single

import (
	"strconv"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file makes commands: arrays of bulk strings.

// word is one word of a command: some text, or what its form says.
type word struct {
	text   string
	number int64
	holder *Request
	form   wordForm
}

type wordForm uint8

const (
	plainText wordForm = iota
	integer            // number
	queueOf            // the name of the wait queue of the key in text
	counterOf          // the name of the fencing counter of the key in text
	holdOf             // the hold of the request in holder
)

// prefixes of the names of what belongs to a key.
var prefixes = [...]string{queueOf: queuePrefix, counterOf: counterPrefix}

// command is the words of a command. Its methods append one word each. They are not inlined: each would take room for a
// word on the stack of its caller, a user's goroutine. That stack would grow with every request and shrink with every
// garbage collection.
type command []word

//go:noinline
func (c command) text(s string) command { return append(c, word{text: s}) }

//go:noinline
func (c command) number(n int64) command { return append(c, word{form: integer, number: n}) }

//go:noinline
func (c command) queue(key string) command { return append(c, word{form: queueOf, text: key}) }

//go:noinline
func (c command) counter(key string) command { return append(c, word{form: counterOf, text: key}) }

// holder appends the string at the request's key while it alone holds the key: the owner for a Plain key, otherwise the
// hold.
//
//go:noinline
func (c command) holder(r *Request) command {
	if r.Kind == Plain {
		return c.text(r.Owner)
	}
	return append(c, word{form: holdOf, holder: r})
}

func (c command) millis(d time.Duration) command { return c.number(d.Milliseconds()) }

func (c command) flag(on bool) command {
	if on {
		return c.number(1)
	}
	return c.number(0)
}

// name appends a name, if there is one.
func (c command) name(s string) command {
	if s == "" {
		return c
	}
	return c.text(s)
}

// spare appends the number of spare tokens, if there are any.
func (c command) spare(n uint64) command {
	if n == 0 {
		return c
	}
	return c.number(int64(n))
}

// script appends how a script is called.
func (c command) script(p program, source bool) command {
	if source {
		return c.text("eval").text(scripts[p]().source)
	}
	return c.text("evalsha").text(scripts[p]().sha)
}

// bundle appends the command of a bundle.
func (c command) bundle(bundle []exchange) command {
	common, _ := bundle[0].call.form()
	c = c.script(common.program, bundle[0].source).number(int64(2 * common.keys * len(bundle)))
	for i := range bundle {
		for _, key := range bundle[i].call.Request.Keys {
			c = c.text(key)
		}
	}
	for i := range bundle {
		for _, key := range bundle[i].call.Request.Keys {
			c = c.queue(key)
		}
	}
	c = c.millis(period(bundle))
	for i := range bundle {
		c = c.holder(bundle[i].call.Request)
	}
	return c
}

// appendCommand appends a command in wire format.
func appendCommand(out []byte, c command) []byte {
	out = wire.AppendHeader(out, '*', int64(len(c)))
	for i := range c {
		switch w := &c[i]; w.form {
		case integer:
			var digits [20]byte
			text := strconv.AppendInt(digits[:0], w.number, 10)
			out = wire.AppendHeader(out, '$', int64(len(text)))
			out = append(out, text...)
		case holdOf:
			out = appendHold(out, w.holder)
		case queueOf, counterOf:
			out = appendBeside(out, prefixes[w.form], w.text)
		default:
			out = wire.AppendHeader(out, '$', int64(len(w.text)))
			out = append(out, w.text...)
		}
		out = append(out, '\r', '\n')
	}
	return out
}

// commandSize returns how many bytes [appendCommand] appends.
func commandSize(c command) int {
	size := headerSize(len(c))
	for i := range c {
		var n int
		switch w := &c[i]; w.form {
		case integer:
			n = numberSize(w.number)
		case holdOf:
			n = holdSize(w.holder)
		case queueOf, counterOf:
			tag, rest := tagFor(w.text)
			n = len(prefixes[w.form]) + len(tag) + len(rest) + len("{}")
		default:
			n = len(w.text)
		}
		size += headerSize(n) + n + len("\r\n")
	}
	return size
}

// box returns a command in go-redis's form.
func box(c command) []any {
	boxed := make([]any, len(c))
	for i := range c {
		switch w := &c[i]; w.form {
		case integer:
			boxed[i] = w.number
		case holdOf:
			boxed[i] = holdValue(w.holder)
		case queueOf, counterOf:
			boxed[i] = beside(prefixes[w.form], w.text)
		default:
			boxed[i] = w.text
		}
	}
	return boxed
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
