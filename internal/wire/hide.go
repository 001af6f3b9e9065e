package wire

import (
	"errors"
	"strings"
)

// This file keeps secrets out of errors: servers quote what they were asked, cut it short and change its case.

// longestShown is how much of a secret in a row an error may show: 28 of 128 bits, and what it has by chance in common with words.
const longestShown = 7

// Hide takes secrets, and longer pieces of them, out of the text of the reply's error, if it has one. That error matches what it did; a secret
// of up to 7 bytes is none.
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

// hidingError matches an error and shows another text. The error can't be had from it.
type hidingError struct {
	text string
	err  error
}

func (e *hidingError) Error() string { return e.text }

func (e *hidingError) Is(target error) bool { return errors.Is(e.err, target) }

// without returns a text without what it has of a secret, which is in lower case.
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

// lower puts ASCII letters into lower case, and keeps the length.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
