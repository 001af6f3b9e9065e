package wire

import (
	"errors"
	"strings"
)

// This file keeps secrets out of errors. Servers quote commands in errors, shorten them and change their case.

// aPiece is how long a piece of a secret is that an error must not show, in characters: 32 of 128 bits. Words may share
// shorter pieces by chance.
const aPiece = 8

// Secrets are texts that errors must not show: their pieces, in lower case. A text below 8 bytes is no secret.
type Secrets map[[aPiece]byte]struct{}

// Add adds a text.
func (s Secrets) Add(secret string) {
	low := lower(secret)
	for i := 0; i+aPiece <= len(low); i++ {
		s[[aPiece]byte(low[i:])] = struct{}{}
	}
}

// Hide removes the secrets, and pieces of 8 or more bytes of them, from the text of the reply's error, if it has one.
// The error still matches the same targets.
func (r *Reply) Hide(secrets Secrets) {
	if r.err == nil {
		return
	}
	text := r.err.Error()
	switch shown := secrets.without(text); {
	case shown == text:
	case r.kind == Refusal:
		r.err = ServerError(shown)
	default:
		r.err = &hidingError{shown, r.err}
	}
}

// hidingError matches an error and shows another text. The original error cannot be unwrapped.
type hidingError struct {
	text string
	err  error
}

func (e *hidingError) Error() string { return e.text }

func (e *hidingError) Is(target error) bool { return errors.Is(e.err, target) }

// without returns text without pieces of secrets. It takes the same time however many secrets there are: a master that
// refuses a batch refuses hundreds of calls.
func (s Secrets) without(text string) string {
	low := lower(text)
	var shown strings.Builder
	hidden := 0 // up to here
	for i := range len(text) {
		if i+aPiece <= len(text) {
			if _, secret := s[[aPiece]byte(low[i:])]; secret {
				if i >= hidden {
					shown.WriteString("…")
				}
				hidden = i + aPiece
			}
		}
		if i >= hidden {
			shown.WriteByte(text[i])
		}
	}
	return shown.String()
}

// lower converts ASCII letters to lower case, and keeps the length.
func lower(text string) []byte {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}
