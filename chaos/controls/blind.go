package controls

import (
	"context"
	"math/rand/v2"
	"time"

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
	// StoppedClock computes the remaining time with a clock that stops while its process is stopped.
	StoppedClock Variant = "clock-stops-with-process"
)

// blind lists the variants as entries of a catalogue.
func blind() []Entry {
	return []Entry{
		{
			Name: string(NoLock),
			acquire: func(ctx context.Context, _ *locker, _ workload.Request) (workload.Hold, error) {
				return nothing{owner: newOwner()}, ctx.Err()
			},
		},
		{Name: string(IdleRelease), release: idle},
		{
			Name: string(Litter),
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				h, err := l.Acquire(ctx, r)
				if err != nil {
					return nil, err
				}
				for _, m := range l.masters {
					_ = m.Set(ctx, "seen:"+h.Owner(), "1", 0).Err() // a master that is away gets none
				}
				return h, nil
			},
		},
		{
			Name: string(Liar),
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				if rand.N(10) > 0 {
					return nil, workload.ErrHeld
				}
				return l.Acquire(ctx, r)
			},
		},
		{
			Name: string(StoppedClock),
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				l.startLazyClock()
				h, err := l.Acquire(ctx, r)
				if err != nil {
					return nil, err
				}
				return &lazyHold{h, l, l.lazyNow() + h.Remaining()}, nil
			},
		},
	}
}

// nothing is a hold of no key.
type nothing struct{ owner string }

func (n nothing) Owner() string                             { return n.owner }
func (nothing) Token() uint64                               { return 0 }
func (nothing) Remaining() time.Duration                    { return 0 }
func (nothing) Done() <-chan struct{}                       { return nil }
func (nothing) Extend(context.Context, time.Duration) error { return nil }
func (nothing) Release(context.Context) error               { return nil }

// lazyHold has its bound by a clock that counts how often it was woken. While its process is stopped it is not.
type lazyHold struct {
	workload.Hold
	locker *locker
	until  time.Duration
}

func (h *lazyHold) Remaining() time.Duration { return h.until - h.locker.lazyNow() }

const lazyTick = 2 * time.Millisecond

// startLazyClock starts the client's clock at its first acquisition.
func (l *locker) startLazyClock() {
	l.lazy.Do(func() {
		l.cleanup.Go(func() {
			tick := time.NewTicker(lazyTick)
			defer tick.Stop()
			for {
				select {
				case <-l.closed:
					return
				case <-tick.C:
					l.counted.Add(1)
				}
			}
		})
	})
}

func (l *locker) lazyNow() time.Duration { return time.Duration(l.counted.Load()) * lazyTick }
