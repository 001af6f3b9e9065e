package subject

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock"
)

// redlockSubject is this library, with its default options.
type redlockSubject struct{ options []redlock.Option }

// Redlock is this library. The options are given to every acquisition; none make plain locks.
func Redlock(options ...redlock.Option) Subject { return &redlockSubject{options: options} }

func (*redlockSubject) Name() string { return "redlock" }

func (s *redlockSubject) Open(ctx context.Context, addrs []string) (Client, error) {
	urls := make([]string, len(addrs))
	for i, addr := range addrs {
		urls[i] = "redis://" + addr // from the command line or a started server: no credentials
	}
	locker, err := redlock.Dial(ctx, urls, redlock.Options{})
	if err != nil {
		return nil, err
	}
	return &redlockClient{locker: locker, options: s.options}, nil
}

type redlockClient struct {
	locker  *redlock.Locker
	options []redlock.Option
}

// Acquire implements Client.
func (c *redlockClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	lock, err := c.locker.Acquire(ctx, key, ttl, c.options...)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// AcquireRenewed implements Renewer.
func (c *redlockClient) AcquireRenewed(ctx context.Context, key string, ttl time.Duration) (RenewedHandle, error) {
	lock, err := c.locker.Acquire(ctx, key, ttl, redlock.AutoRenew())
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (c *redlockClient) Close(ctx context.Context) error { return c.locker.Close(ctx) }
