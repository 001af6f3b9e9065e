package subject

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock"
)

// redlockPair is this library with one lock on two keys in every cycle: the requested key and another one.
type redlockPair struct{ Subject }

// Open implements Subject.
func (s redlockPair) Open(ctx context.Context, addrs []string) (Client, error) {
	c, err := s.Subject.Open(ctx, addrs)
	if err != nil {
		return nil, err
	}
	return redlockPairClient{c.(*redlockClient)}, nil
}

type redlockPairClient struct{ *redlockClient }

// Acquire implements Client.
func (c redlockPairClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	lock, err := c.locker.Acquire(ctx, key, ttl, redlock.AndKeys(key+":other"))
	if err != nil {
		return nil, err
	}
	return lock, nil
}
