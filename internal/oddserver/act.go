package oddserver

import (
	"math"
	"slices"
	"strings"
)

// Act is the change of one step. The zero value passes the command and its reply on unchanged. Methods return a
// changed copy, so that they can be chained: Lie("$5\r\nab").ThenClose().
type Act struct {
	unheard bool   // the server behind does not get the command, so there is no reply
	instead bool   // its reply is not passed on
	before  string // bytes sent before the reply, or in its place
	after   string
	again   int    // how many more times the reply is sent
	cut     int    // how many bytes of it are sent, counted from 1
	late    bool   // it is sent after the next reply
	pieces  int    // at most so many bytes in one write
	filler  string // the text that is repeated
	stream  int64  // up to so many bytes
	end     ending
}

// ending says how a conversation goes on after an answer.
type ending uint8

const (
	goOn ending = iota
	hang
	closes
	reset
)

// Pass changes nothing.
func Pass() Act { return Act{} }

// Say answers with raw bytes; the server behind does not get the command.
func Say(raw string) Act { return Act{unheard: true, instead: true, before: raw} }

// Lie answers with raw bytes although the server behind has performed the command.
func Lie(raw string) Act { return Act{instead: true, before: raw} }

// Silent does not answer, and reads nothing more. The server behind does not get the command.
func Silent() Act { return Act{unheard: true, instead: true, end: hang} }

// Unanswered passes the command on and loses only its reply.
func Unanswered() Act { return Act{instead: true} }

// Before sends raw bytes and then the reply; After the reply and then raw bytes.
func Before(raw string) Act { return Act{before: raw} }

// After is described at Before.
func After(raw string) Act { return Act{after: raw} }

// Again sends the reply n more times.
func Again(n int) Act { return Act{again: n} }

// Late keeps the reply back and sends it behind the next one.
func Late() Act { return Act{late: true} }

// Cut sends the first n bytes of the reply, at most all but one.
func Cut(n int) Act { return Act{cut: n + 1} }

// Pieces sends the reply in writes of at most n bytes.
func Pieces(n int) Act { return Act{pieces: n} }

// ThenHang leaves the connection open after this and says nothing more; ThenClose closes it; ThenReset resets it.
func (a Act) ThenHang() Act { a.end = hang; return a }

// ThenClose is described at ThenHang.
func (a Act) ThenClose() Act { a.end = closes; return a }

// ThenReset is described at ThenHang.
func (a Act) ThenReset() Act { a.end = reset; return a }

// ThenStream goes on with n bytes of filler.
func (a Act) ThenStream(filler string, n int64) Act {
	a.filler, a.stream = filler, n
	return a
}

// ThenStreamForEver goes on with filler until the client goes away.
func (a Act) ThenStreamForEver(filler string) Act { return a.ThenStream(filler, math.MaxInt64) }

// passes reports that the act alters nothing.
func (a Act) passes() bool { return a == Act{} }

// Claims reports whether the act, at a step of this name, may claim that a command was done when it was not. Either
// its reply is a real server's reply for success, or, in a pipeline, there is one reply too many or too few and each
// command gets another's reply. The protocol numbers nothing. A server that lies is one vote less, and only a
// majority of other servers protects from that.
func (a Act) Claims(name string) bool {
	if a.late || a.again > 0 || a == Unanswered() {
		return true
	}
	lines := strings.Split(a.before+"\n"+a.after, "\n")
	return slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "+OK") || (name != "SET" || a.after != "") && strings.ContainsAny(line, ":*")
	})
}

// bytes returns the bytes that the client gets for a reply.
func (a Act) bytes(reply []byte) []byte {
	out := []byte(a.before)
	if !a.instead {
		if a.cut > 0 && len(reply) > 0 {
			reply = reply[:min(a.cut-1, len(reply)-1)]
		}
		for range 1 + a.again {
			out = append(out, reply...)
		}
	}
	return append(out, a.after...)
}

// At plays act at every step of one of these names, separated by spaces.
func At(names string, act Act) Script {
	all := strings.Fields(names)
	return func(step Step) Act {
		if slices.Contains(all, step.Name) {
			return act
		}
		return Act{}
	}
}

// FirstOf plays the first script that alters something.
func FirstOf(scripts ...Script) Script {
	return func(step Step) Act {
		for _, script := range scripts {
			if act := script(step); !act.passes() {
				return act
			}
		}
		return Act{}
	}
}
