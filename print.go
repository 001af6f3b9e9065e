package redlock

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// This file prints a Locker, its Options and a Lock for fmt and log/slog: names, and no secrets.

// Format implements [fmt.Formatter]: by any verb a Locker is printed as its masters and whether it is closed.
func (l *Locker) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, nameOf(l)) // a State keeps what is written
}

// LogValue implements [slog.LogValuer].
func (l *Locker) LogValue() slog.Value { return slog.StringValue(nameOf(l)) }

func nameOf(l *Locker) string {
	if l.check() != nil {
		return "no locker"
	}
	name := "locker over " + strings.Join(l.names, ", ")
	if l.isClosing() {
		name += ", closed"
	}
	return name
}

// String names the lock by its keys and its ID: a lock that is printed does not tell its owner value.
func (k *Lock) String() string {
	if k.isNone() {
		return "no lock"
	}
	return fmt.Sprintf("lock on %s #%s", brief(strings.Join(k.Keys(), ",")), k.ID())
}

// GoString is String, so that %#v shows no more.
func (k *Lock) GoString() string { return k.String() }

// LogValue implements [slog.LogValuer].
func (k *Lock) LogValue() slog.Value { return slog.StringValue(k.String()) }

// LogValue implements [slog.LogValuer]. Options have functions, which slog's JSON does not print.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", o)) }
