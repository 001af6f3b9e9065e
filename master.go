package redlock

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// Master is one independent Redis server that votes. It must not be a replica of another voter, nor the same server
// under another name: either voids the majority.
//
// A Master that is also a [Listener] lets waiters hear of releases; without it they depend on their backoff. One that is
// also a [Preparer] saves work.
//
// [NewMaster] makes one over any go-redis client. An own implementation has to perform each call of a batch atomically,
// as [single.Request] says, and to return by the context's deadline, or soon after; its votes count as unknown from
// then on. Do is called from several goroutines at once.
type Master interface {
	// Name tells the master from others in errors and reports; an address without credentials.
	Name() string
	// Do performs a batch of independent calls and fills in Reply, Err and Sent of each.
	Do(ctx context.Context, batch []*single.Call)
}

// Listener is a Master that can pass on what is published on it. Messages are hints: lost, late and repeated ones do no
// harm.
type Listener interface {
	// Listen passes on messages of channel until stop is called; stop returns when none will come any more. ready is
	// called each time the subscription has been made: what was published before may have been missed.
	Listen(channel string, ready func(), heard func(message string)) (stop func())
}

// Preparer is a Master that builds the bytes of a request once, for all masters of its kind, instead of each time.
type Preparer interface {
	// Prepare is called before r is sent to the first master; r does not change afterwards.
	Prepare(r *single.Request)
}

// NewMaster makes a Master that speaks through client, which may be a *redis.Client with any options (TLS, ACL, a
// Sentinel failover client), a *redis.ClusterClient or a *redis.Ring. The client stays the caller's to close, after the
// Locker. See [single.New] for how its options are overruled, and [single.Open] for connections of the library's own,
// which keep more: a request that timed out is discarded instead of being retransmitted.
func NewMaster(client redis.UniversalClient) (Master, error) {
	m, err := single.New(client, single.Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

// Dial makes a Locker over the masters at the given URLs (redis://user:password@host:port, rediss:// for TLS), with
// client settings that are safe for locks. It does not wait for them: a Locker works as soon as a quorum answers.
// Close closes the connections.
func Dial(_ context.Context, urls []string, opts Options) (*Locker, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	masters := make([]Master, 0, len(urls))
	for i, url := range urls {
		m, err := single.Dial(url, single.Options{RestartGuard: opts.RestartGuard, Clock: opts.Clock.Now})
		if err != nil {
			_ = closeAll(masters) // nothing was sent
			return nil, fmt.Errorf("%w: master %d of %d: %w", ErrInvalid, i+1, len(urls), err)
		}
		masters = append(masters, m)
	}
	l, err := New(masters, opts)
	if err != nil {
		_ = closeAll(masters) // nothing was sent
		return nil, err
	}
	l.owned = masters
	return l, nil
}

// closeAll closes those masters that can be closed.
func closeAll(masters []Master) error {
	var first error
	for _, m := range masters {
		if c, ok := m.(io.Closer); ok {
			if err := c.Close(); err != nil && first == nil {
				first = fmt.Errorf("redlock: close master %s: %w", m.Name(), err)
			}
		}
	}
	return first
}

// checkMasters refuses what can't be a set of independent voters. It sees only names; Check asks the servers.
func checkMasters(masters []Master) error {
	if len(masters) == 0 {
		return invalid("no masters")
	}
	if len(masters) > maxMasters {
		return invalid("%d masters, and %d is the most", len(masters), maxMasters)
	}
	seen := make(map[string]int, len(masters))
	for i, m := range masters {
		if isNil(m) {
			return invalid("master %d of %d is nil", i+1, len(masters))
		}
		name := m.Name()
		if name == "" {
			return invalid("master %d of %d has no name", i+1, len(masters))
		}
		if first, twice := seen[sameAddress(name)]; twice {
			return invalid("masters %d and %d are the same server, %s: it would vote twice", first+1, i+1, name)
		}
		seen[sameAddress(name)] = i
	}
	return nil
}

// isNil also sees through a nil pointer in the interface.
func isNil(m Master) bool {
	if m == nil {
		return true
	}
	v := reflect.ValueOf(m)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// sameAddress folds spellings of one address. The database number is no part of a name: two databases of one server
// are one voter.
func sameAddress(name string) string {
	name = strings.ToLower(name)
	if host, port, found := strings.Cut(name, ":"); found && host == "localhost" {
		return "127.0.0.1:" + port
	}
	return name
}
