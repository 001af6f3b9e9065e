// Package observe helps to observe a [redlock.Locker]: what logs, metrics and traces have in common. The adapters are
// packages of their own, so that nobody inherits what they do not use: slogobserver in this module, promobserver and
// otelobserver in modules of theirs.
//
// An observer is a func(redlock.Event), given as redlock.Options.Observer. It is told of one event after the other, in a
// goroutine of the Locker's own, soon after they happened: it delays nothing but later events. See there.
package observe

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-624411e5/redlock"
)

// Join returns an observer that passes every event on to all of these, in their order. Nil ones are left out; without
// any it returns nil, which costs a Locker nothing.
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

// Result is an event's Err in one word, for labels: there are few of them, and none contains anything of the program's.
// It is "ok" for nil.
func Result(err error) string {
	for _, r := range [...]struct {
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
	} {
		if errors.Is(err, r.is) {
			return r.word
		}
	}
	return "error" // not one of this library's
}
