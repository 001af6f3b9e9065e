package subject

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncSubject is go-redsync as its README sets it up: go-redis clients and mutexes with their default settings; the
// ttl is the only one that is given, because it is in every subject.
type redsyncSubject struct {
	name    string
	options []redsync.Option
}

// Redsync is go-redsync with its default settings.
func Redsync() Subject { return &redsyncSubject{name: "redsync"} }

// RedsyncFailFast is go-redsync with WithFailFast, which returns as soon as a round is decided.
func RedsyncFailFast() Subject {
	return &redsyncSubject{name: "redsync-failfast", options: []redsync.Option{redsync.WithFailFast(true)}}
}

func (s *redsyncSubject) Name() string { return s.name }

func (s *redsyncSubject) Open(_ context.Context, addrs []string) (Client, error) {
	c := &redsyncClient{options: s.options}
	var pools []redsyncredis.Pool
	for _, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		c.clients = append(c.clients, rdb)
		pools = append(pools, goredis.NewPool(rdb))
	}
	c.redsync = redsync.New(pools...)
	return c, nil
}

type redsyncClient struct {
	redsync *redsync.Redsync
	clients []*redis.Client
	options []redsync.Option
}

// Acquire implements Client. A mutex is made for every acquisition: sharing one between goroutines corrupts it.
func (c *redsyncClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	options := make([]redsync.Option, 0, 2)
	options = append(append(options, c.options...), redsync.WithExpiry(ttl))
	m := c.redsync.NewMutex(key, options...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncHandle{m}, nil
}

func (c *redsyncClient) Close(context.Context) error {
	var err error
	for _, rdb := range c.clients {
		err = errors.Join(err, rdb.Close())
	}
	return err
}

type redsyncHandle struct{ mutex *redsync.Mutex }

func (h redsyncHandle) Release(ctx context.Context) error {
	ok, err := h.mutex.UnlockContext(ctx)
	if err == nil && !ok {
		return errNotHeld
	}
	return err
}
