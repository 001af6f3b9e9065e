package single

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Lasting says how long an error of a master lasts.
type Lasting uint8

// The classes of errors, in order: the first ones end soonest.
const (
	// Passing errors are an outage: the next request may succeed.
	Passing Lasting = iota
	// Renewed errors end when the credentials provider returns new credentials. Each new connection calls the provider.
	Renewed
	// Mendable errors end when an operator changes the server, its users, its certificate, its address or its data.
	Mendable
	// Final errors never end: the request itself causes them.
	Final
	// Closed errors never end: the client is closed.
	Closed
)

// Fault is one kind of error of a call; [Faults] lists every kind.
type Fault struct {
	// Name describes the error.
	Name string
	// Lasts is the class of the error.
	Lasts Lasting
	// Why is the event that ends the error.
	Why string

	is func(error) bool
}

// Faults returns the table that [Lasts] uses. The first entry that matches an error counts. The last entry matches
// every error.
func Faults() []Fault { return slices.Clone(faults) }

var faults = []Fault{
	{"the client is closed", Closed, "a client cannot be opened again", isClosed},
	{"another slot than the other keys'", Final, "the keys of the request decide it", replies("CROSSSLOT ")},
	{"credentials of a provider that the server refuses", Renewed, "the provider makes others", is[*renewedError]},
	{
		"wrong password, user switched off, right missing", Mendable, "an operator changes the user on the server",
		isRefusedUser,
	},
	{"certificate of the server not accepted", Mendable, "an operator exchanges the certificate", isUntrusted},
	{"certificate of the client not accepted", Mendable, "an operator exchanges the certificate or the server's " +
		"authority", isAlert},
	{"no TLS at the server's port", Mendable, "an operator exchanges the server", is[tls.RecordHeaderError]},
	{"replica, or another node's key, at an address that was given", Mendable, "an operator promotes it or gives the " +
		"address to another server", is[*elsewhereError]},
	{"the restart guard gets no answer", Mendable, "an operator lets the user ask", isUnclear},
	{"the server is too old, or of another kind", Mendable, "an operator exchanges the server", isOtherServer},
	{
		"the database does not exist", Mendable, "an operator exchanges the server",
		replies("ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode"),
	},
	{
		"something else is in the key's place", Mendable, "an operator removes it, or it expires",
		replies("WRONGTYPE ", "ERR there is no greater fencing token"),
	},
	{
		"everything else: no connection, no answer, still loading, out of memory, guarded after a restart", Passing,
		"time passes", func(error) bool { return true },
	},
}

// Lasts returns the class of a call's error, by the table of [Faults].
func Lasts(err error) Lasting {
	for i := range faults {
		if faults[i].is(err) {
			return faults[i].Lasts
		}
	}
	return Passing
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// replies makes a function that recognises error replies of a server by their prefix.
func replies(prefixes ...string) func(error) bool {
	return func(err error) bool {
		reply, ok := errors.AsType[redis.Error](err)
		return ok && slices.ContainsFunc(prefixes, func(prefix string) bool {
			return strings.HasPrefix(reply.Error(), prefix)
		})
	}
}

var (
	denied = replies("WRONGPASS ", "NOAUTH ", "ERR Protocol error: unauthenticated ", "NOPERM ", "DENIED ",
		"ERR AUTH ", "ERR invalid password", "ERR Client sent AUTH") // servers before 6.0
	deniedInScript = replies("ERR ACL failure in script")
	elsewhere      = replies("READONLY ", "MOVED ")
	unknownCommand = replies("ERR unknown command")
)

// IsDenied reports whether err is a server's refusal of the user: a wrong or missing password, or a missing right. It
// does not recognise a missing right inside a script; each kind of server words that refusal differently.
func IsDenied(err error) bool { return denied(err) }

// IsElsewhere reports whether err came from the wrong server: a replica, or a cluster node without the key. A
// Sentinel or Cluster client finds the right server by itself after a failover or a move of keys.
func IsElsewhere(err error) bool { return elsewhere(err) }

func isClosed(err error) bool { return errors.Is(err, redis.ErrClosed) }

func isRefusedUser(err error) bool { return denied(err) || deniedInScript(err) }

// isUntrusted reports that the client did not accept the server's certificate. A VerifyConnection function may return
// errors of x509.
func isUntrusted(err error) bool {
	return is[*tls.CertificateVerificationError](err) || is[x509.UnknownAuthorityError](err) ||
		is[x509.HostnameError](err)
}

// isAlert reports that the server ended the TLS handshake with an alert.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func isUnclear(err error) bool {
	guard, ok := errors.AsType[*GuardError](err)
	return ok && guard.Unclear != ""
}

func isOtherServer(err error) bool { return unknownCommand(err) || is[*oldServerError](err) }

// The types below wrap errors that do not tell how long they last.

// oldServerError is a server's reply that it does not know an option of a command.
type oldServerError struct{ error }

func (e *oldServerError) Error() string {
	return "the server is older than Redis 6.2, or is of another kind, and does not know an option that locks other " +
		"than plain ones need (ZADD GT): " + e.error.Error()
}

func (e *oldServerError) Unwrap() error { return e.error }

// elsewhereError is the refusal of a wrong server at an address that was given. Nobody looks for the right server.
type elsewhereError struct{ error }

func (e *elsewhereError) Unwrap() error { return e.error }

// passwordError is the refusal of a client without a password by a server that asks for one.
type passwordError struct{ error }

func (e *passwordError) Error() string {
	return "the server asks for a password, and this client has none: " + e.error.Error()
}

func (e *passwordError) Unwrap() error { return e.error }

// wantsPassword recognises a server that asks for a password. The second reply is to a long request.
var wantsPassword = replies("NOAUTH ", "ERR Protocol error: unauthenticated ")

// renewedError is the refusal of a provider's credentials.
type renewedError struct{ error }

func (e *renewedError) Unwrap() error { return e.error }

// explained wraps err if its meaning depends on m.
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
