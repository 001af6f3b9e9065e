package single

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// This file wraps errors that do not say by themselves for how long they last; see faults.go.

// oldServerError is a server's reply that it does not know an option of a command.
type oldServerError struct{ error }

func (e *oldServerError) Error() string {
	return "the server is older than Redis 6.2, or is of another kind, and does not know an option that locks other than plain ones need (ZADD GT): " + e.error.Error()
}

func (e *oldServerError) Unwrap() error { return e.error }

// elsewhereError is the refusal of a server that is not the one to ask, at an address for which nobody looks for another.
type elsewhereError struct{ error }

func (e *elsewhereError) Unwrap() error { return e.error }

// passwordError is the refusal of a server that wants a password, by a client that has none.
type passwordError struct{ error }

func (e *passwordError) Error() string {
	return "the server asks for a password, and this client has none: " + e.error.Error()
}

func (e *passwordError) Unwrap() error { return e.error }

// wantsPassword is how a server answers who gave none, the second to a long request.
var wantsPassword = replies("NOAUTH ", "ERR Protocol error: unauthenticated ")

// renewedError is the refusal of credentials that a provider has made.
type renewedError struct{ error }

func (e *renewedError) Unwrap() error { return e.error }

// explained says what an error means where it does not say so itself.
func (m *Master) explained(err error) error {
	switch {
	case m.renews && isRefusedUser(err):
		return &renewedError{err}
	case wantsPassword(err):
		return &passwordError{err}
	case m.fixed && IsElsewhere(err):
		return &elsewhereError{err}
	}
	if reply, ok := errors.AsType[redis.Error](err); ok && strings.Contains(reply.Error(), "ERR syntax error") {
		return &oldServerError{err}
	}
	return err
}
