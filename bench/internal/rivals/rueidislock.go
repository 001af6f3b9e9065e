package rivals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Rueidislock is rueidislock on the first master alone with a majority of one key: its majority is over keys of one
// server or cluster, not over servers. It renews by itself. Only the end of a context tells the holder that the lock is
// lost.
func Rueidislock() workload.Subject {
	return rival{name: "rueidislock", open: func(_ context.Context, addrs []string) (*client, error) {
		all := &rueidisLockers{addr: addrs[0], byTTL: make(map[time.Duration]rueidislock.Locker)}
		return &client{try: all.acquire, close: all.close}, nil
	}}
}

// rueidisLockers has a locker for each ttl, because a locker has one.
type rueidisLockers struct {
	addr string

	mu    sync.Mutex
	byTTL map[time.Duration]rueidislock.Locker
}

func (a *rueidisLockers) locker(ttl time.Duration) (rueidislock.Locker, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.byTTL[ttl]; l != nil {
		return l, nil
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{a.addr}, ForceSingleClient: true},
		KeyPrefix:    "redlock-chaos", KeyValidity: ttl, KeyMajority: 1, NoLoopTracking: true,
	})
	if err == nil {
		a.byTTL[ttl] = l
	}
	return l, err
}

// acquire waits until ctx is done. The lock's context is a child of the context passed to rueidislock, which must
// outlive the wait.
func (a *rueidisLockers) acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	l, err := a.locker(r.TTL)
	if err != nil {
		return nil, noQuorum(err)
	}
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	ask := l.WithContext
	if r.Once {
		ask = l.TryWithContext
	}
	lock, release, err := ask(held, r.Key)
	waits := stop()
	switch {
	case err == nil && waits:
		return &endless{ // the library does not reveal the value of its keys, so there is no owner
			done: lock.Done(), until: forever(),
			give: func(ctx context.Context) error {
				defer cancel()
				return giveRueidis(ctx, lock, release)
			},
		}, nil
	case err == nil:
		release()
		return nil, ctx.Err()
	}
	cancel()
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return nil, fmt.Errorf("%w: %w", workload.ErrHeld, err)
	}
	return nil, noQuorum(err)
}

// giveRueidis releases a lock. The library does not say whether that succeeded.
func giveRueidis(ctx, lock context.Context, release func()) error {
	lost := lock.Err() != nil
	released := make(chan struct{})
	go func() { release(); close(released) }()
	select {
	case <-released:
	case <-ctx.Done():
		return ctx.Err()
	}
	if lost {
		return subject.ErrNotHeld
	}
	return nil
}

func (a *rueidisLockers) close(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.byTTL {
		l.Close()
	}
	return nil
}
