package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/bench/internal/load"
)

const ttl = 3 * time.Second

// work is one way to use locks.
type work struct {
	name    string
	workers int // for each Locker
	do      func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error
}

// serial numbers keys that are used only once.
var serial atomic.Uint64

func works() []work {
	return []work{
		{"keys that never come again", 8, func(ctx context.Context, l *redlock.Locker, _ *rand.Rand) error {
			return under(ctx, l, fmt.Sprintf("soak:once:%d", serial.Add(1)), nothing)
		}},
		{"fenced", 4, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			// These are more keys than a Locker remembers.
			return under(ctx, l, fmt.Sprintf("soak:fenced:%d", draw.IntN(20_000)), nothing, redlock.Fenced())
		}},
		{"a key that many want", 8, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			return under(ctx, l, fmt.Sprintf("soak:hot:%d", draw.IntN(4)), nothing)
		}},
		{"waits that are given up", 4, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(draw.IntN(5_000))*time.Microsecond)
			defer cancel()
			err := under(ctx, l, fmt.Sprintf("soak:hot:%d", draw.IntN(4)), nothing)
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}},
		{"readers", 3, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			return under(ctx, l, fmt.Sprintf("soak:shared:%d", draw.IntN(3)), nothing, redlock.Shared())
		}},
		{"a writer", 1, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			return under(ctx, l, fmt.Sprintf("soak:shared:%d", draw.IntN(3)), nothing, redlock.Exclusive())
		}},
		{"two keys", 2, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			n := draw.IntN(50)
			return under(ctx, l, fmt.Sprintf("soak:two:%d", n), nothing,
				redlock.AndKeys(fmt.Sprintf("soak:two:%d", (n+1)%50)))
		}},
		{"renewed for two ttls", 4, func(ctx context.Context, l *redlock.Locker, _ *rand.Rand) error {
			return under(ctx, l, fmt.Sprintf("soak:renewed:%d", serial.Add(1)), func(ctx context.Context) {
				load.Wait(ctx, 2*ttl)
			}, redlock.AutoRenew())
		}},
		{"who holds it", 1, func(ctx context.Context, l *redlock.Locker, draw *rand.Rand) error {
			_, err := l.Holder(ctx, fmt.Sprintf("soak:hot:%d", draw.IntN(4)))
			return err
		}},
	}
}

// under works under a lock while the lock is valid.
func under(ctx context.Context, l *redlock.Locker, key string, do func(ctx context.Context),
	opts ...redlock.Option,
) error {
	lock, err := l.Acquire(ctx, key, ttl, opts...)
	if err != nil {
		return err
	}
	do(lock.Context(ctx))
	return lock.Release(context.WithoutCancel(ctx))
}

func nothing(context.Context) {}

// tally counts successes and failures, by name.
type tally struct{ did map[string]*[2]atomic.Int64 }

func newTally(names ...string) *tally {
	t := &tally{did: make(map[string]*[2]atomic.Int64)}
	for _, name := range names {
		t.did[name] = new([2]atomic.Int64)
	}
	return t
}

func (t *tally) note(name string, err error) {
	if err == nil {
		t.did[name][0].Add(1)
	} else {
		t.did[name][1].Add(1)
	}
}

// counts returns successes and failures, by name.
func (t *tally) counts() map[string][2]int64 {
	out := make(map[string][2]int64)
	for name, n := range t.did {
		out[name] = [2]int64{n[0].Load(), n[1].Load()}
	}
	return out
}

// worker does its work until ctx is done, and rests for up to so long each time.
func worker(ctx context.Context, w work, l *redlock.Locker, rest time.Duration, draw *rand.Rand, t *tally) {
	for ctx.Err() == nil {
		err := w.do(ctx, l, draw)
		if ctx.Err() != nil {
			return // a result after the end means nothing
		}
		t.note(w.name, err)
		load.Wait(ctx, time.Duration(draw.Int64N(int64(rest))))
	}
}
