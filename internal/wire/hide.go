package wire

import (
	"errors"
	"strings"
)

// This file keeps secrets out of errors. Servers quote commands in errors, shorten them and change their case.

// longestShown is the longest piece of a secret that an error may show, in characters: 28 of 128 bits. Words may
// share such short pieces by chance.
const longestShown = 7

// Hide removes secrets, and pieces of a secret longer than 7 bytes, from the text of the reply's error, if it has
// one. The error still matches the same targets. A secret of up to 7 bytes is not hidden.
func (r *Reply) Hide(secrets ...string) {
	if r.err == nil {
		return
	}
	text := r.err.Error()
	shown := text
	for _, secret := range secrets {
		shown = without(shown, lower(secret))
	}
	switch {
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

// without returns text without long pieces of a secret. The secret must be in lower case.
func without(text, secret string) string {
	if len(secret) <= longestShown {
		return text
	}
	low := lower(text)
	var shown strings.Builder
	for i := 0; i < len(text); {
		n := 0
		for i+n < len(text) && strings.Contains(secret, low[i:i+n+1]) {
			n++
		}
		if n > longestShown {
			shown.WriteString("…")
			i += n
			continue
		}
		shown.WriteByte(text[i])
		i++
	}
	return shown.String()
}

// lower converts ASCII letters to lower case, and keeps the length.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
