// Package locktest is shared by the tests of locks: masters in memory with answers of the test's choice, clocks,
// goroutines that wait, and questions to real servers. Only tests import it, many with a dot.
package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

const (
	// Key is the lock's name in tests that need one only.
	Key = "orders:42"
	// LongTTL is for locks that must not lapse during a test.
	LongTTL = time.Minute
	// Promptly bounds what should happen at once; a starved machine needs a part of it.
	Promptly = 10 * time.Second
)

// Main runs a package's tests, and fails if they leave goroutines behind.
func Main(m *testing.M) {
	redistest.AtOnce(8) // most of those that are parallel wait for locks to end
	goleak.VerifyTestMain(m)
}

// Must fails the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Is fails the test unless err matches want.
func Is(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("got %v, want an error that matches %v", err, want)
	}
}

// IsNot fails the test if err matches any of these.
func IsNot(tb testing.TB, err error, others ...error) {
	tb.Helper()
	for _, other := range others {
		if errors.Is(err, other) {
			tb.Errorf("%v must not match %v", err, other)
		}
	}
}

// Within returns a context with this deadline that ends with the test.
func Within(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

var sentinels = []error{
	redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrExpired, redlock.ErrNotHeld, redlock.ErrClosed, redlock.ErrInvalid,
	redlock.ErrOutdated, redlock.ErrContended,
	context.Canceled, context.DeadlineExceeded,
}

// OnlyIs fails the test unless err matches want and none of the other sentinels.
func OnlyIs(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, sentinel := range sentinels {
		expected := false
		for _, w := range want {
			expected = expected || sentinel == w //nolint:errorlint // which of the sentinels
		}
		if errors.Is(err, sentinel) != expected {
			t.Errorf("%v: matches %q: %t, want %t", err, sentinel, !expected, expected)
		}
	}
}

// Refused checks that err is an ErrInvalid that names all of these words.
func Refused(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("%s: %v, want ErrInvalid", what, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v does not name %s", what, err, word)
		}
	}
}

// Soon returns a context that ends with the test, or after promptly.
func Soon(tb testing.TB) context.Context {
	tb.Helper()
	return Within(tb, Promptly)
}

// OfSet fails the test unless err is a QuorumError of this set that matches want.
func OfSet(tb testing.TB, err, want error, set string) {
	tb.Helper()
	Is(tb, err, want)
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || q.Set != set || !strings.Contains(err.Error(), "of the "+set+" masters") {
		tb.Errorf("got %v, want an error of the %s masters", err, set)
	}
}
