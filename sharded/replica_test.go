package sharded_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// A replica at an address that was given to the library stays a replica, however the address was given. Behind a
// caller's own client the replica may be replaced.

// takesLocks is a Locker of either package.
type takesLocks interface {
	Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock, error)
}

func TestAReplicaAtAGivenAddressEndsTheWait(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	Demote(t, f["b"][0])
	Demote(t, f["b"][2])
	for _, opts := range []redlock.Options{{}, {Generation: 1}} {
		opts.RequestTimeout = Promptly / 2 // a late answer would be another reason
		during := f.process(t, opts, transition, "a", "b")
		after := f.process(t, opts, sharded.Options{}, "a", "b")
		before := f.process(t, opts, sharded.Options{Before: []string{"a", "b"}, After: []string{"a"}}, "a", "b")
		opened := Wrapped(t, f["b"], opts, func(_ int, m redlock.Master) redlock.Master { return m })
		moving := keyIn(t, after, "b")
		for name, l := range map[string]takesLocks{
			"Dial":                         Dial(t, f["b"], opts),
			"DialJoint, the new ones":      DialJoint(t, f["a"], f["b"], opts),
			"DialJoint, the old ones":      DialJoint(t, f["b"], f["a"], opts),
			"New with single.Dial":         opened,
			"sharded":                      after,
			"sharded, where a key goes":    during,
			"sharded, where it comes from": before,
		} {
			_, err := l.Acquire(Within(t, Promptly), moving, LongTTL, redlock.MaxOutage(time.Second))
			if !errors.Is(err, redlock.ErrMisconfigured) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want one that matches %v", name, err, redlock.ErrMisconfigured)
			}
		}
	}
}

func TestAReplicaBehindAClientMayBecomeAMaster(t *testing.T) {
	s := redistest.Start(t)
	Demote(t, s)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	t.Cleanup(func() { Must(t, client.Close()) })
	m, err := redlock.NewMaster(client)
	Must(t, err)
	var promote sync.Once
	l, err := redlock.New([]redlock.Master{m}, redlock.Options{Observer: func(e redlock.Event) {
		if single.IsElsewhere(e.Err) {
			promote.Do(func() {
				if err := s.Client().Do(context.Background(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
					t.Error(err)
				}
			})
		}
	}})
	Must(t, err)
	defer CloseLocker(t, l)
	lock := Acquire(t, l, LongTTL)
	Must(t, lock.Release(t.Context()))
}
