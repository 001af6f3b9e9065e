// Package workload drives a lock library as programs do, and records the library's promises. Its
// profiles cover one hot key, many keys, long renewed holds, short ones, readers and writers,
// reentrancy, and read-modify-writes of a protected resource.
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

// Adapters report a failed acquisition by one of these errors. Wrap it together with the library's
// own error. An error that matches none of these, nor a context's error, counts as unexpected.
var (
	// ErrHeld: another client has the key.
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
	// Supports returns nil if the library has locks of this kind. Otherwise the error matches
	// ErrUnsupported and says why.
	Supports(kind history.Kind) error
	// Open makes a new client. It must share nothing with another client. addrs are host:port of each master, as this
	// client has to dial them. Masters that want a password or TLS need a [Secured].
	Open(ctx context.Context, addrs []string) (Locker, error)
}

// Secured is a Subject with clients that can log in to masters and use TLS.
type Secured interface {
	// OpenSecured is Subject.Open, with all that a client needs to reach each master; see [endpoint.Endpoint.Options].
	// No password may be in its errors.
	OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (Locker, error)
}

// Open opens a client of the subject for these masters. It fails if they want more than an address and the subject is
// no [Secured]; the error matches ErrUnsupported.
func Open(ctx context.Context, s Subject, masters []endpoint.Endpoint) (Locker, error) {
	if secured, ok := s.(Secured); ok {
		return secured.OpenSecured(ctx, masters)
	}
	for _, m := range masters {
		if !m.IsPlain() {
			return nil,
				fmt.Errorf("%w: %s opens masters by their addresses, and %v takes more than that (credentials, TLS "+
					"or a resolver): implement workload.Secured", ErrUnsupported, s.Name(), m)
		}
	}
	return s.Open(ctx, endpoint.Addrs(masters))
}

// OwnerReader is a Subject that stores more than the plain owner in a key's value, hash field or set member.
type OwnerReader interface {
	// OwnerOf returns the owner, as Hold.Owner gives it, from the raw text on a master.
	OwnerOf(raw string) string
}

// Patient is a Subject that knows its timeout for the reply of one master. While a path is so slow
// that this timeout could be too short, the path counts as useless. For other subjects the harness
// assumes a timeout of a twentieth of the ttl, and at most 50 ms.
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

// Limited is a Locker that learns its missing features only when it is opened, like a program that
// names them in its answer to open.
type Limited interface {
	// Lacks returns nil if the Locker can do all that the profile needs. Otherwise the error matches
	// ErrUnsupported and names the missing feature.
	Lacks(p Profile) error
}

// Renewer is a Subject that renews holds by itself if [Request.Renew] is set. Scenarios with renewed
// holds are skipped for other subjects.
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
	// Acquire takes the key or returns an error; it never returns neither. With r.Once it tries once, else until ctx is
	// done.
	Acquire(ctx context.Context, r Request) (Hold, error)
	// Close ends the client. Keys that it could not remove yet should be removed by then.
	Close(ctx context.Context) error
}

// Request is a worker's request for a lock.
type Request struct {
	Key string
	// Also are further keys of the same lock: the hold covers all keys, or there is no hold. Only for a [Several].
	Also []string
	TTL  time.Duration
	Kind history.Kind
	// Once asks for a single attempt.
	Once bool
	// Renew asks the library to keep the hold by itself. Libraries that can't may ignore it.
	Renew bool
	// ToBound asks for a hold that lasts until its bound. A library that ends holds earlier, so that who works under
	// them has time to stop, is to leave no such margin.
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
