package redlock

import (
	"fmt"
	"log/slog"
	"strings"
)

// This file has what fmt and log/slog print of a Locker, its Options and a Lock: names, and nothing that is a secret.

// String names the masters, and says whether the Locker is closed.
func (l *Locker) String() string {
	if l.check() != nil {
		return "no locker"
	}
	state := ""
	if l.isClosing() {
		state = ", closed"
	}
	return "locker over " + strings.Join(l.names, ", ") + state
}

// GoString is String, for %#v.
func (l *Locker) GoString() string { return l.String() }

// LogValue implements [slog.LogValuer].
func (l *Locker) LogValue() slog.Value { return slog.StringValue(l.String()) }

// String names the lock by its keys and its ID: a lock that is printed does not tell its owner value.
func (k *Lock) String() string {
	if k.isNone() {
		return "no lock"
	}
	return fmt.Sprintf("lock on %q #%s", strings.Join(k.Keys(), ","), k.ID())
}

// GoString is String, so that %#v tells no more.
func (k *Lock) GoString() string { return k.String() }

// LogValue implements [slog.LogValuer].
func (k *Lock) LogValue() slog.Value { return slog.StringValue(k.String()) }

// LogValue implements [slog.LogValuer]. Options have functions, which slog's JSON does not print.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", o)) }
