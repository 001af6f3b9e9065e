// Package workload drives a lock library the way programs do, and writes down what it promised: one hot key, many
// keys, long renewed holds, short ones, readers and writers, reentrancy, read-modify-writes of a protected resource.
//
// Any library can be driven: see [Subject]. Nothing here knows how locks are made.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
)

// What adapters say about an acquisition that failed. Wrap the library's own error together with one of these; an
// error that matches none of them, nor a context's, counts as unexpected.
var (
	// ErrHeld: somebody else has the key.
	ErrHeld = errors.New("workload: held by another")
	// ErrNoQuorum: too few masters answered.
	ErrNoQuorum = errors.New("workload: no quorum")
	// ErrExpired: won too late.
	ErrExpired = errors.New("workload: validity used up")
	// ErrLost: an extension or release found that the hold is gone.
	ErrLost = errors.New("workload: not held any more")
	// ErrUnsupported: the library can't do this at all.
	ErrUnsupported = errors.New("workload: the library can't do this")
)

// Subject is a lock library under test. Its methods are called concurrently.
type Subject interface {
	// Name is for reports.
	Name() string
	// Supports returns nil if locks of this kind can be had, or an error that matches ErrUnsupported and says why not.
	Supports(kind history.Kind) error
	// Open makes a client of its own: nothing it uses may be shared with another client. addrs are host:port of each
	// master, as this client has to dial them. Masters that want a password or TLS are for a [Secured].
	Open(ctx context.Context, addrs []string) (Locker, error)
}

// Secured is a Subject whose clients can log in to masters and speak TLS with them.
type Secured interface {
	// OpenSecured is Subject.Open, with all that a client needs to reach each master; see [endpoint.Endpoint.Options]. No
	// password may be in its errors.
	OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (Locker, error)
}

// Open opens a client of the subject for these masters. It fails if they want more than an address and the subject is no
// [Secured]; the error matches ErrUnsupported.
func Open(ctx context.Context, s Subject, masters []endpoint.Endpoint) (Locker, error) {
	if secured, ok := s.(Secured); ok {
		return secured.OpenSecured(ctx, masters)
	}
	for _, m := range masters {
		if !m.IsPlain() {
			return nil, fmt.Errorf("%w: %s opens masters by their addresses, and %v takes more than that (credentials, TLS or a resolver): implement workload.Secured", ErrUnsupported, s.Name(), m)
		}
	}
	return s.Open(ctx, endpoint.Addrs(masters))
}

// OwnerReader is a Subject whose masters do not have the plain owner for a value, or for a hash field or set member.
type OwnerReader interface {
	// OwnerOf returns the owner, as Hold.Owner gives it, from what was found on a master.
	OwnerOf(raw string) string
}

// Patient is a Subject that knows how long it waits for the reply of one master. A path is counted as useless while it is so slow that
// this could be too short. Of others it is assumed that they wait for a twentieth of the ttl, and for 50 ms at the most.
type Patient interface {
	// Patience returns that time for locks with that ttl.
	Patience(ttl time.Duration) time.Duration
}

// PatienceOf is how long a subject waits for the reply of one master.
func PatienceOf(s Subject, ttl time.Duration) time.Duration {
	if p, ok := s.(Patient); ok {
		return p.Patience(ttl)
	}
	return min(ttl/20, 50*time.Millisecond)
}

// Limited is a Locker that knows only when it was opened what it can't do, as a program that says so in its answer to open.
type Limited interface {
	// Lacks returns nil, or an error that matches ErrUnsupported and says what the profile wants that there is not.
	Lacks(p Profile) error
}

// Renewer is a Subject that renews holds by itself when it is asked to ([Request.Renew]). Without it scenarios are skipped
// whose holds are to be renewed.
type Renewer interface {
	// RenewsHolds is never called: having it says so.
	RenewsHolds()
}

// Several is a Subject that may have locks over several keys, all or none.
type Several interface {
	// SupportsSeveral returns nil if it has, or an error that matches ErrUnsupported and says why not.
	SupportsSeveral() error
}

// Locker is one client.
type Locker interface {
	// Acquire takes the key or returns an error; it never returns neither. With r.Once it tries once, else until ctx is done.
	Acquire(ctx context.Context, r Request) (Hold, error)
	// Close ends the client. Keys that it could not remove yet should be removed by then.
	Close(ctx context.Context) error
}

// Request is what a worker asks for.
type Request struct {
	Key string
	// Also are further keys of the same lock: the hold is of all of them or there is none. Only for a [Several].
	Also []string
	TTL  time.Duration
	Kind history.Kind
	// Once asks for a single attempt.
	Once bool
	// Renew asks the library to keep the hold by itself. Libraries that can't may ignore it.
	Renew bool
	// ToBound asks for a hold that lasts until its bound. A library that ends holds earlier, so that who works under them has time
	// to stop, is to leave no such margin.
	ToBound bool
	// Owner asks for a hold of this owner (reentrant locks).
	Owner string
}

// Hold is one acquisition.
type Hold interface {
	// Owner is the value that the masters have for the key, to recognise it there.
	Owner() string
	// Token is the fencing token, 0 when there is none.
	Token() uint64
	// Remaining is how long the holder may still act, as the library tells it.
	Remaining() time.Duration
	// Done closes when the hold is lost or released; nil when the library has no such thing.
	Done() <-chan struct{}
	// Extend asks for ttl more. ErrUnsupported when the library can't.
	Extend(ctx context.Context, ttl time.Duration) error
	// Release gives the key back.
	Release(ctx context.Context) error
}

// Classify says how a call ended. ctx is the one the call had.
func Classify(ctx context.Context, err error) history.Outcome {
	switch {
	case err == nil:
		return history.Acquired
	case ctx.Err() != nil:
		return history.Cancelled
	case errors.Is(err, ErrUnsupported):
		return history.Unsupported
	case errors.Is(err, ErrHeld), errors.Is(err, ErrLost):
		return history.Held
	case errors.Is(err, ErrNoQuorum):
		return history.NoQuorum
	case errors.Is(err, ErrExpired):
		return history.Expired
	default:
		return history.Failed
	}
}
