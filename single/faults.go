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

// Lasting is for how long an error of a master lasts.
type Lasting uint8

// From what passes by itself to what never does.
const (
	// Passing errors are an outage: the next request may succeed.
	Passing Lasting = iota
	// Renewed errors end when a credentials provider returns other credentials. It is asked for each new connection.
	Renewed
	// Mendable errors come again until somebody changes a server, its users, its certificate, its address or its data.
	Mendable
	// Final errors follow from the request alone.
	Final
	// Closed errors come from a client that was closed.
	Closed
)

// Fault is a kind of error that a call can end with. [Faults] lists all of them.
type Fault struct {
	// Name says what went wrong.
	Name string
	// Lasts is for how long.
	Lasts Lasting
	// Why says what would have to happen before a request can succeed.
	Why string

	is func(error) bool
}

// Faults returns the table by which [Lasts] judges errors. The first fault that an error is counts; every error is the last one.
func Faults() []Fault { return slices.Clone(faults) }

var faults = []Fault{
	{"the client is closed", Closed, "a client cannot be opened again", isClosed},
	{"another slot than the other keys'", Final, "the keys of the request decide it", replies("CROSSSLOT ")},
	{"credentials of a provider that the server refuses", Renewed, "the provider makes others", is[*renewedError]},
	{"wrong password, user switched off, right missing", Mendable, "an operator changes the user on the server", isRefusedUser},
	{"certificate of the server not accepted", Mendable, "an operator exchanges the certificate", isUntrusted},
	{"certificate of the client not accepted", Mendable, "an operator exchanges the certificate or the server's authority", isAlert},
	{"no TLS at the server's port", Mendable, "an operator exchanges the server", is[tls.RecordHeaderError]},
	{"replica, or another node's key, at an address that was given", Mendable, "an operator promotes it or gives the address to another server", is[*elsewhereError]},
	{"the restart guard gets no answer", Mendable, "an operator lets the user ask", isUnclear},
	{"the server is too old, or of another kind", Mendable, "an operator exchanges the server", isOtherServer},
	{"the database does not exist", Mendable, "an operator exchanges the server", replies("ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode")},
	{"something else is in the key's place", Mendable, "an operator removes it, or it expires", replies("WRONGTYPE ", "ERR there is no greater fencing token")},
	{"everything else: no connection, no answer, still loading, out of memory, guarded after a restart", Passing, "time passes", func(error) bool { return true }},
}

// Lasts says for how long err lasts, with which a call has ended, as far as err tells. See [Faults].
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

// replies makes a test for a server's reply that begins with one of the prefixes.
func replies(prefixes ...string) func(error) bool {
	return func(err error) bool {
		reply, ok := errors.AsType[redis.Error](err)
		return ok && slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) })
	}
}

var (
	denied = replies("WRONGPASS ", "NOAUTH ", "ERR Protocol error: unauthenticated ", "NOPERM ", "DENIED ",
		"ERR AUTH ", "ERR invalid password", "ERR Client sent AUTH") // servers before 6.0
	deniedInScript = replies("ERR ACL failure in script")
	elsewhere      = replies("READONLY ", "MOVED ")
	unknownCommand = replies("ERR unknown command")
)

// IsDenied reports that err is a server's reply to a user whom it does not let in, or who may not do what was asked: a wrong password,
// or none, or a missing permission. A script that meets one says so in words of its own, which differ by server.
func IsDenied(err error) bool { return denied(err) }

// IsElsewhere reports that err came from a server that is not the one to ask: a replica, or a node of a cluster that has other keys.
// Where a client finds out by itself which one is, that is over when a failover is, or a move of keys.
func IsElsewhere(err error) bool { return elsewhere(err) }

func isClosed(err error) bool { return errors.Is(err, redis.ErrClosed) }

func isRefusedUser(err error) bool { return denied(err) || deniedInScript(err) }

// isUntrusted reports that the client did not accept the server's certificate. A VerifyConnection of the user's may return what x509 says.
func isUntrusted(err error) bool {
	return is[*tls.CertificateVerificationError](err) || is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err)
}

// isAlert reports that the server has ended a TLS handshake with an alert.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func isUnclear(err error) bool {
	guard, ok := errors.AsType[*GuardError](err)
	return ok && guard.Unclear != ""
}

func isOtherServer(err error) bool { return unknownCommand(err) || is[*oldServerError](err) }
