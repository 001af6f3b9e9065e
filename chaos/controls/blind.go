package controls

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// The variants that a harness overlooks which only looks for two holders at a time.
const (
	// NoLock locks nothing, and says of every hold that there is no time left to act under it.
	NoLock Variant = "no-lock"
	// IdleRelease leaves the key to its ttl, and says that it was released.
	IdleRelease Variant = "release-does-nothing"
	// Litter leaves a key without a ttl for each acquisition.
	Litter Variant = "key-for-ever"
	// Liar answers nine times of ten that another client has the key, without asking.
	Liar Variant = "held-without-asking"
	// StoppedClock computes the remaining time with a clock that stops while its process is
	// stopped.
	StoppedClock Variant = "clock-stops-with-process"
)

// Blind lists those variants.
func Blind() []Variant { return []Variant{NoLock, IdleRelease, Litter, Liar, StoppedClock} }

// blind implements workload.Subject: a Textbook with one thing otherwise.
type blind struct{ variant Variant }

func (s blind) Name() string { return string(s.variant) }

func (s blind) Supports(kind history.Kind) error {
	if kind == history.Plain {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s locks", workload.ErrUnsupported, s.variant, kind)
}

func (s blind) Open(ctx context.Context, addrs []string) (workload.Locker, error) {
	return s.OpenSecured(ctx, endpoint.AllPlain(addrs))
}

// OpenSecured implements workload.Secured.
func (s blind) OpenSecured(ctx context.Context, masters []endpoint.Endpoint) (workload.Locker, error) {
	inner, err := subject{Textbook}.OpenSecured(ctx, masters)
	if err != nil {
		return nil, err
	}
	l := &blindLocker{Locker: inner, variant: s.variant}
	switch s.variant {
	case Litter:
		for _, m := range masters {
			opt, err := endpoint.Options(m)
			if err != nil {
				return nil, errors.Join(err, l.Close(ctx))
			}
			opt.MaxRetries, opt.DisableIdentity = -1, true
			l.litter = append(l.litter, redis.NewClient(opt))
		}
	case StoppedClock:
		l.clock.start()
	}
	return l, nil
}

type blindLocker struct {
	workload.Locker
	variant Variant
	litter  []*redis.Client
	clock   lazyClock
}

func (l *blindLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	switch l.variant {
	case NoLock:
		return nothing{owner: newOwner()}, ctx.Err()
	case Liar:
		if rand.N(10) > 0 {
			return nil, workload.ErrHeld
		}
	}
	inner, err := l.Locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, client := range l.litter {
		_ = client.Set(ctx, "seen:"+inner.Owner(), "1", 0).Err() // a master that is away gets none
	}
	h := &blindHold{Hold: inner, locker: l}
	if l.variant == StoppedClock {
		h.until = l.clock.now() + inner.Remaining()
	}
	return h, nil
}

func (l *blindLocker) Close(ctx context.Context) error {
	l.clock.stop()
	err := l.Locker.Close(ctx)
	for _, client := range l.litter {
		err = errors.Join(err, client.Close())
	}
	return err
}

type blindHold struct {
	workload.Hold
	locker *blindLocker
	until  time.Duration // by its clock
}

func (h *blindHold) Remaining() time.Duration {
	if h.locker.variant == StoppedClock {
		return h.until - h.locker.clock.now()
	}
	return h.Hold.Remaining()
}

func (h *blindHold) Release(ctx context.Context) error {
	if h.locker.variant == IdleRelease {
		return nil
	}
	return h.Hold.Release(ctx)
}

// nothing is a hold of no key.
type nothing struct{ owner string }

func (n nothing) Owner() string                             { return n.owner }
func (nothing) Token() uint64                               { return 0 }
func (nothing) Remaining() time.Duration                    { return 0 }
func (nothing) Done() <-chan struct{}                       { return nil }
func (nothing) Extend(context.Context, time.Duration) error { return nil }
func (nothing) Release(context.Context) error               { return nil }

// lazyClock counts how often it was woken. While its process is stopped it is not.
type lazyClock struct {
	ticks  atomic.Int64
	cancel context.CancelFunc
	group  sync.WaitGroup
}

const lazyTick = 2 * time.Millisecond

func (c *lazyClock) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.group.Go(func() {
		tick := time.NewTicker(lazyTick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.ticks.Add(1)
			}
		}
	})
}

func (c *lazyClock) now() time.Duration { return time.Duration(c.ticks.Load()) * lazyTick }

func (c *lazyClock) stop() {
	if c.cancel != nil {
		c.cancel()
		c.group.Wait()
	}
}
