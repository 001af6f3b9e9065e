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

// redsyncSubject is go-redsync as its README sets it up: go-redis clients and mutexes with their default settings. Only
// the ttl is set, as for every subject.
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
	return redsyncClient{openRedsync(addrs, s.options...)}, nil
}

// RedsyncClient holds a process's go-redsync: a pool of go-redis for each master, and mutexes over them all. The bench
// and the chaos comparison share it.
type RedsyncClient struct {
	redsync *redsync.Redsync
	clients []*redis.Client
	options []redsync.Option
}

// openRedsync makes a RedsyncClient for the masters at addrs, over go-redis with its default settings.
func openRedsync(addrs []string, options ...redsync.Option) *RedsyncClient {
	clients := make([]*redis.Client, len(addrs))
	for i, addr := range addrs {
		clients[i] = redis.NewClient(&redis.Options{Addr: addr})
	}
	return RedsyncOver(clients, options...)
}

// RedsyncOver makes one over clients, one a master, which it closes.
func RedsyncOver(clients []*redis.Client, options ...redsync.Option) *RedsyncClient {
	c := &RedsyncClient{clients: clients, options: options}
	var pools []redsyncredis.Pool
	for _, rdb := range clients {
		pools = append(pools, goredis.NewPool(rdb))
	}
	c.redsync = redsync.New(pools...)
	return c
}

// NewMutex makes a mutex. Each acquisition needs its own: sharing one between goroutines corrupts it.
func (c *RedsyncClient) NewMutex(key string, ttl time.Duration) *redsync.Mutex {
	options := make([]redsync.Option, 0, 2)
	return c.redsync.NewMutex(key, append(append(options, c.options...), redsync.WithExpiry(ttl))...)
}

// Close ends the connections.
func (c *RedsyncClient) Close() error {
	var err error
	for _, rdb := range c.clients {
		err = errors.Join(err, rdb.Close())
	}
	return err
}

type redsyncClient struct{ all *RedsyncClient }

func (c redsyncClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	m := c.all.NewMutex(key, ttl)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncHandle{m}, nil
}

func (c redsyncClient) Close(context.Context) error { return c.all.Close() }

type redsyncHandle struct{ mutex *redsync.Mutex }

func (h redsyncHandle) Release(ctx context.Context) error {
	ok, err := h.mutex.UnlockContext(ctx)
	if err == nil && !ok {
		return ErrNotHeld
	}
	return err
}
