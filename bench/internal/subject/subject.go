// Package subject has one interface for all the ways of taking a lock that the benchmark compares.
//
// The rivals run with the settings that their documentation recommends. A comment gives the reason for each setting
// that is not the default. The two hand-written ones share one Redlock (see majority.go) and differ only in the Redis
// client.
package subject

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
)

// Subject is one way of taking locks. Implementations hold no state of a run, so one Subject may open any number of
// clients at once.
type Subject interface {
	// Name is the name in tables and JSON.
	Name() string
	// Open returns a client as a process would have it, with new connections to all addrs (host:port, one a master) and
	// new state. ctx limits only the opening. The caller closes the client.
	Open(ctx context.Context, addrs []string) (Client, error)
}

// Hosted is a Subject that does not use the masters. It runs separate servers, and Open gets their addresses.
type Hosted interface {
	Subject
	// Start runs the servers; ctx limits only the start. The caller closes them. If their program is not installed, the
	// error matches [backend.ErrNotInstalled].
	Start(ctx context.Context) (*fleet.Fleet, error)
	// About describes the subject and the settings of its servers in a line.
	About() string
}

// Client is one process's view of the masters. Safe for concurrent use.
type Client interface {
	// Acquire waits until it has the key or ctx ends. A subject that stops earlier (redsync after 32 tries) returns its
	// error; the harness counts the error and asks again. ttl is how long the masters keep the key.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error)
	// Close ends background work, and then the connections, within ctx.
	Close(ctx context.Context) error
}

// Handle is one acquisition. It is released once.
type Handle interface {
	Release(ctx context.Context) error
}

// Renewer is a Client that can keep a key by itself until it is released.
type Renewer interface {
	// AcquireRenewed is Acquire with automatic renewal.
	AcquireRenewed(ctx context.Context, key string, ttl time.Duration) (RenewedHandle, error)
}

// RenewedHandle is an acquisition that is renewed automatically.
type RenewedHandle interface {
	Handle
	// Done is closed when the hold has been lost.
	Done() <-chan struct{}
}

// Variant is one kind of hold of this library, compared with the plain one.
type Variant struct {
	// Kind is the name in the output: plain, fenced, shared, reentrant.
	Kind    string
	Subject Subject
}

// pause waits for a random time between 1 and 5 ms. It is the retry interval of subjects without a wait. It is far
// below the 50 to 250 ms of redsync, so it does not make these subjects slow. It is random, so contenders that split
// the votes do not meet again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond + rand.N(4*time.Millisecond)):
		return nil
	}
}
