package rivals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// redsyncSubject is go-redsync as its README sets it up: mutexes over pools of go-redis clients. The only setting is
// the expiry, because every subject gets the workload's.
type redsyncSubject struct {
	name    string
	options []redsync.Option
	client  redis.Options // Addr is set for each master
}

// Redsync is go-redsync with its default settings, over go-redis with its default settings.
func Redsync() workload.Subject { return redsyncSubject{name: "redsync"} }

// RedsyncFailFast is go-redsync with WithFailFast, which returns as soon as a round is decided.
func RedsyncFailFast() workload.Subject {
	return redsyncSubject{name: "redsync-failfast", options: []redsync.Option{redsync.WithFailFast(true)}}
}

// RedsyncTuned is RedsyncFailFast with go-redis clients that end a request at redsync's timeout, a twentieth of the
// expiry. By default go-redis ignores the deadline once a request is sent: it waits for its own 3 s and tries three
// times more.
func RedsyncTuned() workload.Subject {
	return redsyncSubject{
		name: "redsync-tuned", options: []redsync.Option{redsync.WithFailFast(true)},
		client: redis.Options{ContextTimeoutEnabled: true, MaxRetries: -1},
	}
}

// Name implements workload.Subject.
func (s redsyncSubject) Name() string { return s.name }

// RenewsHolds implements workload.Renewer.
func (redsyncSubject) RenewsHolds() {}

// Supports implements workload.Subject.
func (s redsyncSubject) Supports(kind history.Kind) error { return plainOnly(s.name, kind) }

// Open implements workload.Subject.
func (s redsyncSubject) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	return s.over(subject.OpenRedsync(addrs, s.client, s.options...), len(addrs)), nil
}

// OpenSecured implements workload.Secured.
func (s redsyncSubject) OpenSecured(_ context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	var clients []*redis.Client
	for _, m := range masters {
		reach, err := m.Options()
		if err != nil {
			for _, c := range clients {
				err = errors.Join(err, c.Close())
			}
			return nil, err
		}
		own := s.client
		own.Addr, own.Username, own.Password, own.DB, own.TLSConfig = reach.Addr, reach.Username, reach.Password,
			reach.DB, reach.TLSConfig
		own.Dialer = reach.Dialer
		clients = append(clients, redis.NewClient(&own))
	}
	return s.over(subject.RedsyncOver(clients, s.options...), len(masters)), nil
}

func (s redsyncSubject) over(all *subject.RedsyncClient, masters int) *redsyncClient {
	return &redsyncClient{client: client{connections: []io.Closer{all}}, subject: s, all: all, masters: masters}
}

type redsyncClient struct {
	client
	subject redsyncSubject
	all     *subject.RedsyncClient
	masters int
}

// Acquire implements workload.Locker. redsync stops after 32 tries; a caller that still wants the lock calls it again,
// as the comment on LockContext says.
func (c *redsyncClient) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	if err := c.subject.Supports(r.Kind); err != nil {
		return nil, err
	}
	m := c.all.NewMutex(r.Key, r.TTL)
	lock := m.LockContext
	if r.Once {
		lock = m.TryLockContext
	}
	for {
		err := lock(ctx)
		if err == nil {
			return c.keep(r, &redsyncLease{m, r.TTL, c.masters}, m.Value(), m.Until()), nil
		}
		if r.Once || ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), refused(err, c.masters))
		}
	}
}

// refused translates an acquisition's error into the workload's words.
func refused(err error, masters int) error {
	failed, taken := answers(err)
	quorum := masters/2 + 1
	switch {
	case failed > masters-quorum:
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	case masters-failed-taken >= quorum: // a majority granted it, too late
		return fmt.Errorf("%w: %w", workload.ErrExpired, err)
	default:
		return fmt.Errorf("%w: %w", workload.ErrHeld, err)
	}
}

// lost translates the error of an extension or a release into the workload's words.
func lost(err error, masters int) error {
	failed, _ := answers(err)
	switch {
	case err == nil:
		return workload.ErrLost
	case errors.Is(err, redsync.ErrExtendFailed): // a majority extended it, too late
		return fmt.Errorf("%w: %w", workload.ErrExpired, err)
	case failed > masters-(masters/2+1):
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	default:
		return fmt.Errorf("%w: %w", workload.ErrLost, err)
	}
}

// answers counts the masters in an error of redsync: failed ones, and ones that answered that another client has the
// key or that the key is gone.
func answers(err error) (failed, taken int) {
	var majority *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	var broken *redsync.RedisError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			f, t := answers(e)
			failed, taken = failed+f, taken+t
		}
		return failed, taken
	}
	switch {
	case errors.As(err, &majority):
		return 0, len(majority.Nodes)
	case errors.As(err, &broken):
		return 1, 0
	case errors.As(err, &node), errors.Is(err, redsync.ErrLockAlreadyExpired):
		return 0, 1
	default:
		return 0, 0
	}
}

// redsyncLease is a mutex that is locked.
type redsyncLease struct {
	mutex   *redsync.Mutex
	expiry  time.Duration
	masters int
}

func (l *redsyncLease) extend(ctx context.Context, ttl time.Duration) (time.Time, error) {
	if ttl != l.expiry {
		return time.Time{}, fmt.Errorf("%w: redsync extends by the mutex's expiry, %v", workload.ErrUnsupported,
			l.expiry)
	}
	if ok, err := l.mutex.ExtendContext(ctx); !ok || err != nil {
		return time.Time{}, lost(err, l.masters)
	}
	return l.mutex.Until(), nil
}

func (l *redsyncLease) release(ctx context.Context) error {
	if ok, err := l.mutex.UnlockContext(ctx); !ok || err != nil {
		return lost(err, l.masters)
	}
	return nil
}
