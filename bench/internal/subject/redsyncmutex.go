package subject

import (
	"context"
	"sync"
	"time"
)

// redsyncMutex shows how a program with go-redsync serves several goroutines that want one key. They queue for a mutex
// of the process first, and only the owner of the mutex asks the masters.
type redsyncMutex struct{}

// RedsyncMutex is go-redsync with its default settings behind a mutex of the process for every key.
func RedsyncMutex() Subject { return redsyncMutex{} }

func (redsyncMutex) Name() string { return "redsync-mutex" }

// OneProcess marks a subject that differs from others only where goroutines of one process want the same key.
func (redsyncMutex) OneProcess() {}

func (redsyncMutex) Open(_ context.Context, addrs []string) (Client, error) {
	return &redsyncMutexClient{redsyncClient: redsyncClient{openRedsync(addrs)}}, nil
}

type redsyncMutexClient struct {
	redsyncClient
	mutexes sync.Map // key to chan struct{} of capacity 1: waiters are served in order and can cancel
}

func (c *redsyncMutexClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	known, ok := c.mutexes.Load(key)
	if !ok {
		known, _ = c.mutexes.LoadOrStore(key, make(chan struct{}, 1))
	}
	mutex := known.(chan struct{})
	select {
	case mutex <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	handle, err := c.redsyncClient.Acquire(ctx, key, ttl)
	if err != nil {
		<-mutex
		return nil, err
	}
	return redsyncMutexHandle{handle, mutex}, nil
}

type redsyncMutexHandle struct {
	Handle
	mutex chan struct{}
}

func (h redsyncMutexHandle) Release(ctx context.Context) error {
	defer func() { <-h.mutex }()
	return h.Handle.Release(ctx)
}
