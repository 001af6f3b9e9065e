// Package observe has the common parts of the adapters that observe a [redlock.Locker] for logs, metrics and traces.
// Each adapter is a separate package, so that a program has only the dependencies that it uses: slogobserver is in
// this module, promobserver and otelobserver are in separate modules.
//
// An observer is a func(redlock.Event) in redlock.Options.Observer. One goroutine of the Locker calls it with one
// event after the other, soon after they happened. A slow observer delays only later events. See Observer in
// redlock.Options.
package observe

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-624411e5/redlock"
)

// Join returns an observer that passes every event on to all of these, in their order. It leaves out nil observers. If
// none is left it returns nil, which costs a Locker nothing.
func Join(observers ...func(redlock.Event)) func(redlock.Event) {
	observers = slices.DeleteFunc(slices.Clone(observers), func(f func(redlock.Event)) bool { return f == nil })
	switch len(observers) {
	case 0:
		return nil
	case 1:
		return observers[0]
	}
	return func(e redlock.Event) {
		for _, observer := range observers {
			observer(e)
		}
	}
}

// results are the words for errors; the first match counts.
var results = [...]struct {
	is   error
	word string
}{
	{nil, "ok"},
	{redlock.ErrClosed, "closed"}, // before not_held: a lock of a closed Locker matches both
	{redlock.ErrAlreadyHeld, "already_held"},
	{redlock.ErrHeld, "held"},
	{redlock.ErrContended, "contended"},
	{redlock.ErrNoQuorum, "no_quorum"},
	{redlock.ErrExpired, "expired"},
	{redlock.ErrNotHeld, "not_held"},
	{redlock.ErrInvalid, "invalid"},
	{context.Canceled, "canceled"}, // the caller's context ended before there was an answer
	{context.DeadlineExceeded, "canceled"},
}

// other is the word for an error from outside this library.
const other = "error"

// Result is an event's Err in one word, for labels: there are few such words, and none contains data of the program.
// It is "ok" for nil.
func Result(err error) string {
	for _, r := range results {
		if errors.Is(err, r.is) {
			return r.word
		}
	}
	return other
}

// Results returns each possible result of [Result] once.
func Results() []string {
	words := make([]string, 0, len(results)+1)
	for _, r := range results {
		words = append(words, r.word)
	}
	return slices.Compact(append(words, other))
}

// Ops returns every [redlock.Event.Op] of a decided round.
func Ops() []string { return []string{"acquire", "attach", "extend", "verify", "release"} }
