package single

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// deniedReplies begin what servers say to users whom they do not let in, or who may not do what is asked.
var deniedReplies = []string{
	"WRONGPASS ", "NOAUTH ", "ERR Protocol error: unauthenticated ", "NOPERM ", "DENIED ",
	"ERR AUTH ", "ERR invalid password", "ERR Client sent AUTH", // servers before 6.0
}

// permanentReplies begin the other error replies that the same request gets again until somebody changes the server's or the
// client's settings, or the data.
var permanentReplies = []string{
	"WRONGTYPE ", "CROSSSLOT ",
	"ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode",
	"ERR unknown command", "ERR ACL failure in script",
	"ERR there is no greater fencing token",
}

// Permanent reports that err, the error of a call, comes again with every further attempt. Such errors are:
//
//   - a wrong password, or a missing permission;
//   - a key of another type;
//   - a server whose version is too old, or with a certificate that is not accepted;
//   - a server that can't say how long it has run (GuardError.Unclear);
//   - the wrong server ([IsElsewhere]) at an address given to [Dial] or [Open].
//
// Servers that are loading, busy, full or unreachable may recover; their errors are not permanent.
func Permanent(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*oldServerError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*elsewhereError](err); ok {
		return true
	}
	if guard, ok := errors.AsType[*GuardError](err); ok {
		return guard.Unclear != ""
	}
	return IsDenied(err) || begins(err, permanentReplies)
}

// IsDenied reports that err is a server's reply to a user without the right to log in or to do the operation: a wrong
// or missing password, or a missing permission. If a script meets such an error, the text differs by server.
func IsDenied(err error) bool { return begins(err, deniedReplies) }

// begins reports that err is a server's reply that begins with one of the prefixes.
func begins(err error, prefixes []string) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) })
}

// IsElsewhere reports that err came from a server that is not the one to ask: a replica, or a node of a cluster that has other keys.
// Where a client finds out by itself which one is, that is over when a failover is, or a move of keys.
func IsElsewhere(err error) bool { return begins(err, []string{"READONLY ", "MOVED "}) }

// oldServerError is a server's reply that it does not know an option of a command.
type oldServerError struct{ reply error }

func (e *oldServerError) Error() string {
	return "the server is older than Redis 6.2, or is of another kind, and does not know an option that locks other than plain ones need (ZADD GT): " + e.reply.Error()
}

func (e *oldServerError) Unwrap() error { return e.reply }

// elsewhereError is the refusal of a server that is not the one to ask, at an address for which nobody looks for another.
type elsewhereError struct{ reply error }

func (e *elsewhereError) Error() string { return e.reply.Error() }

func (e *elsewhereError) Unwrap() error { return e.reply }

// explained says what an error reply means where its text does not.
func (m *Master) explained(err error) error {
	reply, ok := errors.AsType[redis.Error](err)
	switch {
	case !ok:
		return err
	case strings.Contains(reply.Error(), "ERR syntax error"):
		return &oldServerError{err}
	case m.fixed && IsElsewhere(err):
		return &elsewhereError{err}
	}
	return err
}
