package subject

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/sharded"
)

// redlockSubject is this library, with its default options.
type redlockSubject struct {
	open    func(ctx context.Context, addrs []string) (locker, error)
	options []redlock.Option // of every acquisition
}

// locker is a Locker of this library, or of its package sharded.
type locker interface {
	Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
	Close(ctx context.Context) error
}

// Redlock is this library. The options are given to every acquisition; none make plain locks.
func Redlock(options ...redlock.Option) Subject {
	return &redlockSubject{options: options, open: func(ctx context.Context, addrs []string) (locker, error) {
		return redlock.Dial(ctx, URLs(addrs), redlock.Options{})
	}}
}

// Sharded is this library with one group for every size masters, which share the keys. Masters that fill no group are
// left out.
func Sharded(size int) Subject {
	return &redlockSubject{open: func(_ context.Context, addrs []string) (locker, error) {
		var groups []sharded.Group
		for members := range slices.Chunk(addrs[:len(addrs)/size*size], size) {
			groups = append(groups, sharded.Group{Name: fmt.Sprintf("group %d", len(groups)), URLs: URLs(members)})
		}
		return sharded.New(groups, sharded.Options{})
	}}
}

// URLs are the URLs of masters. They come from the command line or from a started server: they have no credentials.
func URLs(addrs []string) []string {
	urls := make([]string, len(addrs))
	for i, addr := range addrs {
		urls[i] = "redis://" + addr
	}
	return urls
}

func (*redlockSubject) Name() string { return "redlock" }

func (s *redlockSubject) Open(ctx context.Context, addrs []string) (Client, error) {
	locker, err := s.open(ctx, addrs)
	if err != nil {
		return nil, err
	}
	return &redlockClient{locker, s.options}, nil
}

type redlockClient struct {
	locker
	options []redlock.Option
}

func (c *redlockClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	return granted(c.locker.Acquire(ctx, key, ttl, c.options...))
}

// AcquireRenewed implements Renewer.
func (c *redlockClient) AcquireRenewed(ctx context.Context, key string, ttl time.Duration) (RenewedHandle, error) {
	lock, err := c.locker.Acquire(ctx, key, ttl, redlock.AutoRenew())
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// granted returns the handle of an acquisition, and nil after an error: a nil pointer would be another Handle.
func granted[H Handle](handle H, err error) (Handle, error) {
	if err != nil {
		return nil, err
	}
	return handle, nil
}

// redlockPair is this library with one lock on two keys in every cycle: the requested key and another one.
type redlockPair struct{ Subject }

func (redlockPair) Open(ctx context.Context, addrs []string) (Client, error) {
	l, err := redlock.Dial(ctx, URLs(addrs), redlock.Options{})
	if err != nil {
		return nil, err
	}
	return redlockPairClient{l}, nil
}

type redlockPairClient struct{ *redlock.Locker }

func (c redlockPairClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	return granted(c.Locker.Acquire(ctx, key, ttl, redlock.AndKeys(key+":other")))
}
