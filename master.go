package redlock

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/internal/address"
	"github.com/seed-624411e5/redlock/internal/cause"
	"github.com/seed-624411e5/redlock/single"
)

// Master is one independent Redis server that votes. It must not be a replica of another voter, nor the same server
// under another name: either voids the majority.
//
// A Master that is also a [Listener] has waiters notified of releases; without it they depend on their backoff. One
// that is also [Guarded] bounds ttls. One that is also a [Preparer] saves work.
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

// Listener is a Master that passes on messages published on it. Messages are hints: a lost, late or repeated message
// does no harm.
type Listener interface {
	// Listen subscribes to channel and calls notified with each message, until stop is called. After stop has
	// returned no call follows. Listen calls ready after each time that it has subscribed: messages published before
	// may be missed.
	Listen(channel string, ready func(), notified func(message string)) (stop func())
}

// Guarded is a Master with a restart guard: after a restart that may have lost locks, it does not vote for
// RestartGuard. 0 is no guard. A Locker takes no lock for longer than the shortest guard of its masters. Either all
// masters of a Locker have a guard or none has, since one master that forgets makes a quorum unsafe.
type Guarded interface {
	RestartGuard() time.Duration
}

// Timed is a Master with its own clock, as package redlocktest has. A Locker uses the clock of its first Timed
// master, unless [Options].Clock is set.
type Timed interface {
	Clock() Clock
}

// clockOf returns the clock of the masters, or nil if they have no clock.
func clockOf(masters []Master) Clock {
	for _, m := range masters {
		if t, ok := m.(Timed); ok {
			return t.Clock()
		}
	}
	return nil
}

// guardOf is the restart guard of a master, 0 if it has none.
func guardOf(m Master) time.Duration {
	if g, ok := m.(Guarded); ok {
		return max(0, g.RestartGuard())
	}
	return 0
}

// checkGuard returns the shortest guard of the masters, 0 if they have none. asked is the guard from the Locker's
// options.
func checkGuard(masters []Master, asked time.Duration) (time.Duration, error) {
	var shortest time.Duration
	for i, m := range masters {
		guard := guardOf(m)
		switch {
		case guard < asked && guard == 0:
			return 0, invalid("Options.RestartGuard is %v, and master %d of %d, %s, has no restart guard: open it "+
				"with one, as Dial and single.Open do",
				asked, i+1, len(masters), m.Name())
		case guard < asked:
			return 0, invalid("Options.RestartGuard is %v, and master %d of %d, %s, has one of %v only", asked, i+1,
				len(masters), m.Name(), guard)
		case i > 0 && (guard == 0) != (shortest == 0):
			return 0, invalid("of the masters %s and %s one has a restart guard and the other has none: give all of "+
				"them one, or none", masters[0].Name(), m.Name())
		case i == 0 || guard < shortest:
			shortest = guard
		}
	}
	if asked > 0 {
		return asked, nil // which is shorter
	}
	return shortest, nil
}

// Preparer is a Master that builds the bytes of a request once, for all masters of its kind, instead of each time.
type Preparer interface {
	// Prepare is called before r is sent to the first master; r does not change afterwards. A mutex of the lock is
	// held: it must not wait, nor ask the lock or the Locker.
	Prepare(r *single.Request)
}

// NewMaster makes a Master that speaks through client, which may be a *redis.Client with any options (TLS, ACL, a
// Sentinel failover client), a *redis.ClusterClient or a *redis.Ring. The client stays the caller's to close, after the
// Locker. [Open] needs no client, and keeps more: a request that timed out is discarded instead of being retransmitted.
//
// Settings of a *redis.Client for its connections are used: addresses, DB, Protocol, TLSConfig, Dialer, credentials and
// their providers, OnConnect, the pool, Limiter, and DialHooks. Settings for requests are not used: MaxRetries,
// ContextTimeoutEnabled, ReadTimeout and WriteTimeout, since each request is sent once and ends at its own deadline.
// Its ProcessHooks and ProcessPipelineHooks do not see the requests of locks. To trace these, for any Master, use
// otelobserver.Requests or [Options].Observer. Clients of a Cluster or Ring are used as they are ([single.New]), with
// their hooks; such hooks see owner values, which are secrets.
func NewMaster(client redis.UniversalClient) (Master, error) {
	m, err := single.New(client, single.Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

// Dial makes a Locker over the masters at the given URLs (redis://user:password@host:port, rediss:// for TLS; see
// [single.ParseURL]), with client settings that are safe for locks. Close closes the connections.
//
// Dial does not wait for the masters: the Locker connects when it first needs them, and works as soon as a quorum
// answers. [Locker.Check] tells whether it can connect. If ctx has ended already, Dial opens nothing and returns
// ctx's error; ctx has no other effect.
func Dial(ctx context.Context, urls []string, opts Options) (*Locker, error) {
	d := newDialing(ctx, opts)
	masters := d.dial(urls, "")
	return d.locker(func() (*Locker, error) { return New(masters, d.opts) })
}

// Open makes a Locker over the masters at these addresses. Use it for settings that a URL can't express: your own
// authority or client certificate (TLSConfig), credentials that change (CredentialsProvider), a Dialer. [single.Open]
// says which settings a lock overrules; [single.ParseURL] makes options from a URL. In all else Open is as [Dial].
func Open(masters []*redis.Options, opts Options) (*Locker, error) {
	d := newDialing(context.Background(), opts)
	for i, master := range masters {
		d.open(i, len(masters), master, nil, "")
	}
	return d.locker(func() (*Locker, error) { return New(d.opened, d.opts) })
}

// dialing opens masters, each URL once, until that fails.
type dialing struct {
	opts   Options
	byURL  map[string]Master
	opened []Master
	err    error
}

func newDialing(ctx context.Context, opts Options) *dialing {
	d := &dialing{byURL: make(map[string]Master)}
	switch {
	case ctx == nil:
		d.err = invalid("nil context")
	case ctx.Err() != nil:
		d.err = fmt.Errorf("redlock: dial: %w", cause.Of(ctx))
	default:
		d.opts, d.err = opts.withDefaults()
	}
	return d
}

// locker makes a Locker that closes the masters with itself. If that fails, they are closed at once: nothing was sent.
func (d *dialing) locker(build func() (*Locker, error)) (l *Locker, err error) {
	if err = d.err; err == nil {
		l, err = build()
	}
	if err != nil {
		_ = closeAll(d.opened)
		return nil, err
	}
	l.owned = d.opened
	return l, nil
}

// dial opens the masters of a set, which an error names.
func (d *dialing) dial(urls []string, set string) []Master {
	masters := make([]Master, len(urls))
	for i, url := range urls {
		if d.byURL[url] == nil {
			opt, err := single.ParseURL(url)
			d.byURL[url] = d.open(i, len(urls), opt, err, set)
		}
		masters[i] = d.byURL[url]
	}
	return masters
}

// open opens master i of n, unless there is an error already.
func (d *dialing) open(i, n int, opt *redis.Options, err error, set string) Master {
	if d.err != nil {
		return nil
	}
	var m *single.Master
	if err == nil {
		m, err = single.Open(opt, single.Options{RestartGuard: d.opts.RestartGuard, Clock: d.opts.Clock.Now})
	}
	if err != nil {
		d.err = fmt.Errorf("%w: master %d of %d: %w%s", ErrInvalid, i+1, n, err, set)
		return nil
	}
	d.opened = append(d.opened, m)
	return m
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

// checkMasters refuses a list of masters that can't be independent voters. It sees only names; Check asks the
// servers.
func checkMasters(masters []Master) error {
	if len(masters) == 0 {
		return invalid("no masters")
	}
	if len(masters) > maxMasters {
		return invalid("%d masters, and %d is the most", len(masters), maxMasters)
	}
	byName := make(map[string]int, len(masters))
	for i, m := range masters {
		if isNil(m) {
			return invalid("master %d of %d is nil", i+1, len(masters))
		}
		name := m.Name()
		if name == "" {
			return invalid("master %d of %d has no name", i+1, len(masters))
		}
		if first, twice := byName[address.Fold(name)]; twice {
			return invalid("masters %d and %d are the same server, %s: it would vote twice", first+1, i+1, name)
		}
		byName[address.Fold(name)] = i
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

// Check asks the masters whether the assumptions of this package hold, as far as a server can tell. It checks that
// the masters are different servers and no replicas, neither evict nor forget locks, have clocks at the right rate
// and answer in time. It also checks that this user may do all that a lock needs. For that it takes and releases a
// lock on a key that expires within seconds; it changes nothing else.
//
// Check takes about a second, at most ten, and no longer than ctx. If Check can't reach a master, or its user may not
// ask a question, the report has a finding. The error means that no Check took place: it matches [ErrInvalid],
// [ErrClosed], or ctx's error. Check can't find masters that share a machine, rack or disk, or a person who runs
// FLUSHALL or sets a clock.
func (l *Locker) Check(ctx context.Context) (*audit.Report, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, invalid("nil context")
	}
	// Close waits until every master has been checked, including masters whose results Check does not wait for.
	if !l.env.Registry.IfOpen(func() { l.checks.Add(1) }) {
		return nil, ErrClosed
	}
	defer l.checks.Done()
	masters := make([]audit.Master, len(l.masters))
	for i, m := range l.masters {
		masters[i] = m
	}
	sets := make([]audit.Set, len(l.env.Sets))
	for i, set := range l.env.Sets {
		sets[i] = audit.Set(set)
	}
	report, err := audit.Run(ctx, masters, audit.Settings{
		Sets: sets, Generation: l.opts.Generation, DriftFactor: l.opts.DriftFactor,
		RequestTimeout: l.opts.RequestTimeout, LeastTimeout: minRequestTimeout, MostTimeout: maxRequestTimeout,
		TimeoutShare: timeoutShare, Now: l.clock.Now, Wall: l.clock.Wall, Go: l.checks.Go,
		Sleep: func(ctx context.Context, d time.Duration) error {
			return l.explain(ctx, nil, l.crowd.Sleep(ctx, l.closing, nil, d))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("redlock: check: %w", cause.Of(ctx))
	}
	return report, nil
}
