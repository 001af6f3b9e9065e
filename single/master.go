package single

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Master is one Redis server behind a go-redis client. It runs the scripts and converts their replies. It is safe for
// concurrent use.
type Master struct {
	name   string
	client redis.UniversalClient
	// patience bounds a request without a deadline; 0 leaves that to the client.
	patience time.Duration
	// exact says that this client sends a request at most once. So a failed dial means that nothing was sent.
	exact     bool
	owned     bool
	fixed     bool      // connections go to the given address, not to the current master
	renews    bool      // a provider makes the credentials of each connection
	heldBack  abandoned // batches past their deadline that the client still works on
	guard     *guard    // nil without Options.RestartGuard
	transport transport
	apart     atomic.Int64 // until when releases go out one by one, in Unix nanoseconds
	crowds    crowds       // keys that several hold
	scratch   sync.Pool    // of *[]exchange
}

// Options configure a Master. The zero value is usable.
type Options struct {
	// Name identifies the master in errors and reports. Default: the client's address, never a credential. A client
	// without a useful address (a Sentinel failover client) needs a name.
	Name string
	// RestartGuard keeps a restarted master from voting until it has run for this long. Set it to the longest ttl of
	// all locks on the master, at least a millisecond. It needs the library's own connections, so [Open] and [Dial]
	// accept it and [New] refuses it. The user needs INFO and TIME.
	//
	// A master that fsyncs every command before it answers, and still has its data, votes at once, if the user may
	// use CONFIG GET, and GET and SET on [GuardKey]. See [GuardError]. Default: no guard, which is safe only for
	// masters that keep their data.
	RestartGuard time.Duration
	// Clock returns the time since some fixed moment and never goes back. The guard measures with it how long the
	// master has been known. Default: Go's monotonic clock. If that clock stops while the machine is suspended, the
	// guard only lasts longer.
	Clock func() time.Duration
}

// New makes a Master that sends its requests through client: standalone, TLS, ACL, Sentinel failover, Cluster or
// Ring. The caller closes the client; Close does not.
//
// For a *redis.Client New derives a client that shares its pool, keeps the deadline of every request and never
// retries. Hooks on commands do not see these requests; DialHooks see the connections. Cluster and Ring clients are
// used as they are: set ContextTimeoutEnabled and MaxRetries -1. If such a client holds a request past its deadline,
// the call ends as unknown, but the next request to this master waits until the client returns. Close a Ring only
// when no request is under way, also none that the Ring holds back: go-redis may panic in a goroutine where no caller
// can recover.
func New(client redis.UniversalClient, opts Options) (*Master, error) {
	if opts.RestartGuard != 0 {
		return nil, errGuardNeedsOpen
	}
	m := &Master{name: opts.Name, client: client}
	carries := client
	switch c := client.(type) {
	case nil:
		return nil, errors.New("single: nil client")
	case *redis.Client:
		if c == nil {
			return nil, errors.New("single: nil client")
		}
		opt := c.Options()
		m.name = cmp.Or(m.name, opt.Addr)
		m.renews = isProvided(opt.CredentialsProviderContext, opt.CredentialsProvider, opt.StreamingCredentialsProvider)
		own := keepDeadlines(c, c.Options().ReadTimeout)
		m.client, m.exact, m.patience = own, true, c.Options().ReadTimeout
		// the deadline alone, which may be later; negative: none is ever set
		carries = keepDeadlines(c, min(0, m.patience))
	case *redis.ClusterClient:
		if c == nil {
			return nil, errors.New("single: nil client")
		}
		opt := c.Options()
		m.name = cmp.Or(m.name, strings.Join(opt.Addrs, ","))
		m.renews = isProvided(opt.CredentialsProviderContext, opt.CredentialsProvider, opt.StreamingCredentialsProvider)
	case *redis.Ring:
		if c == nil {
			return nil, errors.New("single: nil client")
		}
		opt := c.Options()
		m.name = cmp.Or(m.name, strings.Join(slices.Sorted(maps.Values(opt.Addrs)), ","))
		m.renews = isProvided(opt.CredentialsProviderContext, opt.CredentialsProvider, opt.StreamingCredentialsProvider)
	}
	if m.name == "" {
		return nil, fmt.Errorf("single: a %T has no address to go by: set Options.Name", client)
	}
	m.transport = clientTransport{carries, m.exact}
	return m, nil
}

// keepDeadlines derives a client on the same connections that obeys the context's deadline and sends a request once.
// By default go-redis ignores the deadline of a request in flight, and sends a request up to four times. A timeout
// above 0 also applies.
func keepDeadlines(c *redis.Client, timeout time.Duration) *redis.Client {
	derived := c.WithTimeout(timeout)
	opt := derived.Options() // the derived client's own copy
	opt.ContextTimeoutEnabled = true
	opt.MaxRetries = 0
	return derived
}

// Name returns the master's name: its address, or what Options named it.
func (m *Master) Name() string { return m.name }

// Format implements [fmt.Formatter]: by any verb a Master is printed as its name.
func (m *Master) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, nameOf(m)) // the State keeps a write error
}

// LogValue implements [slog.LogValuer].
func (m *Master) LogValue() slog.Value { return slog.StringValue(nameOf(m)) }

func nameOf(m *Master) string {
	if m == nil {
		return "no master"
	}
	return m.name
}

// Client returns a client of the same server, for commands of your own. Of a Cluster or Ring it is the one that was
// given; of all others its hooks do not see the requests of locks.
func (m *Master) Client() redis.UniversalClient { return m.client }

// Close closes the client if the Master made it itself ([Open], [Dial]); otherwise it does nothing.
func (m *Master) Close() error {
	if !m.owned {
		return nil
	}
	return errors.Join(m.transport.close(), m.client.Close())
}

// Prepare builds, once, the commands that Do sends first for r. Prepare a Request for each of its masters before the
// first one gets it; after that it must not change. For a request that was not prepared, Do builds them each time.
func (m *Master) Prepare(r *Request) { m.transport.prepare(r) }

// Ask performs one request and returns its reply. With it, a single master can be used without the rest of the
// library. If err is not nil, the request may still have taken effect, or may do so later. So after a failed
// acquisition, always release.
func (m *Master) Ask(ctx context.Context, r Request) (Reply, error) {
	if err := r.validate(); err != nil {
		return Reply{}, err
	}
	c := &Call{Request: &r}
	m.Do(ctx, []*Call{c})
	return c.Reply, c.Err
}

// Do performs a batch of independent calls in one pipeline. A second or third pipeline follows if a master did not
// know a script, or to learn the holder of a key that SET NX found taken. Do fills in every call's Reply, Err and
// Sent. ctx's deadline bounds it.
func (m *Master) Do(ctx context.Context, batch []*Call) {
	if _, own := m.transport.(conns); own {
		m.do(ctx, batch)
		return
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		if m.patience <= 0 {
			m.do(ctx, batch)
			return
		}
		deadline = time.Now().Add(m.patience)
	}
	// Other users of the client may have used up its pool, and only Done ends a wait for a connection.
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if m.exact {
		m.do(ctx, batch)
	} else {
		m.within(ctx, batch)
	}
}

// errHeldBack is the error of calls while the client still works on an earlier call past that call's deadline.
var errHeldBack = errors.New("single: the client holds back an earlier request past its deadline")

// within performs a batch through a client that may ignore deadlines. The batch ends here at the deadline. While the
// client still works on it, and perhaps sends it again, nothing else is sent, so that nothing overtakes it.
func (m *Master) within(ctx context.Context, batch []*Call) {
	if m.heldBack.Load() > 0 {
		for _, c := range batch {
			c.Reply, c.Err, c.Sent = Reply{}, errHeldBack, false
		}
		return
	}
	private := make([]*Call, len(batch)) // the client may write to these after the return
	for i, c := range batch {
		private[i] = &Call{Request: c.Request}
	}
	ended := m.heldBack.wait(ctx, func() { m.do(ctx, private) })
	for i, c := range batch {
		if ended {
			c.Reply, c.Err, c.Sent = private[i].Reply, private[i].Err, private[i].Sent
		} else {
			c.Reply, c.Err, c.Sent = Reply{}, ctx.Err(), true
		}
	}
}
