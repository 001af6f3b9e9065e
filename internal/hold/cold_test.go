package hold_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// cold is a master with a first connection that takes some time, or cannot be made.
type cold struct {
	*Fake
	ready time.Time
	err   error // of the connection
}

func (m *cold) Do(ctx context.Context, batch []*single.Call) {
	err := m.err
	if wait := time.Until(m.ready); wait > 0 && err == nil {
		deadline, _ := ctx.Deadline()
		if deadline.Before(m.ready) {
			wait, err = time.Until(deadline), fmt.Errorf("no connection yet: %w", context.DeadlineExceeded)
		}
		Pass(wait)
	}
	if err == nil {
		m.Fake.Do(ctx, batch)
		return
	}
	for _, c := range batch {
		c.Reply, c.Err, c.Sent = single.Reply{}, err, false
	}
}

// A connection may take longer than a request. Masters that a new Locker is still being connected to are not out of
// reach for a try.
func TestATryOfANewLockerWaitsForItsConnections(t *testing.T) {
	const ttl, never = 2 * time.Second, -1
	for name, tt := range map[string]struct {
		ready    []int // in how many milliseconds, by master
		err      error // of connections that are never made
		wins     bool
		from, to int // how many milliseconds a try takes
	}{
		"soon":                     {[]int{0, 0, 0, 0, 0}, nil, true, 0, 100},
		"within the timeout":       {[]int{80, 80, 80, 80, 80}, nil, true, 80, 100},
		"later":                    {[]int{150, 150, 150, 150, 150}, nil, true, 150, 200},
		"much later":               {[]int{950, 950, 950, 950, 950}, nil, true, 950, 1050},
		"all but a minority":       {[]int{never, 700, 0, 0, never}, nil, true, 700, 800},
		"too late":                 {[]int{never, never, never, 0, 0}, nil, false, 1000, 1100},
		"refused":                  {[]int{never, never, never, 0, 0}, syscall.ECONNREFUSED, false, 0, 50},
		"refused, but no quorum's": {[]int{never, never, 300, 300, 300}, syscall.ECONNREFUSED, true, 300, 400},
	} {
		for option, opts := range map[string][]redlock.Option{
			"TryAcquire": nil, "MaxAttempts(1)": {redlock.MaxAttempts(1)},
		} {
			RunVirtual(t, name+", "+option, func(t *testing.T) {
				masters := NewFakes(len(tt.ready))
				masters.Behave(Away(time.Millisecond))
				all := make([]redlock.Master, len(masters))
				for i, m := range masters {
					c := &cold{Fake: m, ready: time.Now().Add(time.Duration(tt.ready[i]) * time.Millisecond)}
					if tt.ready[i] == never {
						c.ready, c.err = time.Now().Add(time.Hour), tt.err
					}
					all[i] = c
				}
				l := LockerOver(t, all, redlock.Options{Clock: NewClock()})
				began := time.Now()
				Concurrently(10, func(i int) {
					_, err := tryOnce(t.Context(), l, fmt.Sprint("free:", i), ttl, opts)
					took := time.Since(began).Milliseconds()
					if (err == nil) != tt.wins || err != nil && !errors.Is(err, redlock.ErrNoQuorum) {
						t.Errorf("try %d: %v", i, err)
					}
					if took < int64(tt.from) || took > int64(tt.to) {
						t.Errorf("try %d took %d ms, want %d to %d ms", i, took, tt.from, tt.to)
					}
				})
				Settle(5 * time.Second)
			})
		}
	}
}

func tryOnce(ctx context.Context, l *redlock.Locker, key string, ttl time.Duration,
	opts []redlock.Option,
) (*redlock.Lock, error) {
	if len(opts) > 0 {
		return l.Acquire(ctx, key, ttl, opts...)
	}
	return l.TryAcquire(ctx, key, ttl)
}
