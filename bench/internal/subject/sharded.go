package subject

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/sharded"
)

// shardedSubject is this library with its keys spread over groups of masters.
type shardedSubject struct{ size int }

// Sharded is this library with one group for every size masters. Masters that fill no group are left out.
func Sharded(size int) Subject { return shardedSubject{size} }

func (shardedSubject) Name() string { return "redlock" }

// Open implements Subject.
func (s shardedSubject) Open(ctx context.Context, addrs []string) (Client, error) {
	var groups []sharded.Group
	for members := range slices.Chunk(addrs, s.size) {
		if len(members) < s.size {
			break
		}
		urls := make([]string, len(members))
		for i, addr := range members {
			urls[i] = "redis://" + addr // from the command line or a started server: no credentials
		}
		groups = append(groups, sharded.Group{Name: fmt.Sprintf("group %d", len(groups)), URLs: urls})
	}
	locker, err := sharded.New(groups, sharded.Options{})
	if err != nil {
		return nil, err
	}
	return &shardedClient{locker}, nil
}

type shardedClient struct{ sharded *sharded.Locker }

// Acquire implements Client.
func (c *shardedClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	lock, err := c.sharded.Acquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (c *shardedClient) Close(ctx context.Context) error { return c.sharded.Close(ctx) }
