package rivals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// redsyncWith is go-redsync as its README sets it up: mutexes over pools of go-redis clients. The only setting of a
// mutex is the expiry, because every subject gets the workload's.
func redsyncWith(name string, set func(*redis.Options), options ...redsync.Option) workload.Subject {
	return overRedis{rival{name: name}, func(masters []*redis.Options) *client {
		var clients []*redis.Client
		for _, m := range masters {
			set(m)
			clients = append(clients, redis.NewClient(m))
		}
		return redsyncOver(subject.RedsyncOver(clients, options...), len(masters))
	}}
}

func asItIs(*redis.Options) {}

// Redsync is go-redsync with its default settings, over go-redis with its default settings.
func Redsync() workload.Subject { return redsyncWith("redsync", asItIs) }

// RedsyncFailFast is go-redsync with WithFailFast, which returns as soon as a round is decided.
func RedsyncFailFast() workload.Subject {
	return redsyncWith("redsync-failfast", asItIs, redsync.WithFailFast(true))
}

// RedsyncTuned is RedsyncFailFast with go-redis clients that end a request at redsync's timeout, a twentieth of the
// expiry. By default go-redis ignores the deadline once a request is sent: it waits for its own 3 s and tries three
// times more.
func RedsyncTuned() workload.Subject {
	return redsyncWith("redsync-tuned", func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries = true, -1 },
		redsync.WithFailFast(true))
}

// redsyncOver makes a client. redsync stops after 32 tries; a caller that still wants the lock calls it again at once,
// as the comment on LockContext says.
func redsyncOver(all *subject.RedsyncClient, masters int) *client {
	c := &client{close: closing(all), pause: func() time.Duration { return 0 }}
	c.try = func(ctx context.Context, r workload.Request) (workload.Hold, error) {
		m := all.NewMutex(r.Key, r.TTL)
		lock := m.LockContext
		if r.Once {
			lock = m.TryLockContext
		}
		if err := lock(ctx); err != nil {
			return nil, refused(err, masters)
		}
		l := &redsyncLock{m, r.TTL, masters}
		return c.keep(r, &hold{owner: m.Value(), until: m.Until(), more: l.extend, give: l.release}), nil
	}
	return c
}

// refused translates an acquisition's error into the workload's words.
func refused(err error, masters int) error {
	failed, taken := answers(err)
	quorum := masters/2 + 1
	switch {
	case failed > masters-quorum:
		return noQuorum(err)
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
		return noQuorum(err)
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

// redsyncLock is a mutex that is locked.
type redsyncLock struct {
	mutex   *redsync.Mutex
	expiry  time.Duration
	masters int
}

func (l *redsyncLock) extend(ctx context.Context, ttl time.Duration) (time.Time, error) {
	if ttl != l.expiry {
		return time.Time{}, fmt.Errorf("%w: redsync extends by the mutex's expiry, %v", workload.ErrUnsupported,
			l.expiry)
	}
	if ok, err := l.mutex.ExtendContext(ctx); !ok || err != nil {
		return time.Time{}, lost(err, l.masters)
	}
	return l.mutex.Until(), nil
}

func (l *redsyncLock) release(ctx context.Context) error {
	if ok, err := l.mutex.UnlockContext(ctx); !ok || err != nil {
		return lost(err, l.masters)
	}
	return nil
}
