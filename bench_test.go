package redlock_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/growth"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// BenchmarkCycle measures acquire and release over five real masters.
func BenchmarkCycle(b *testing.B) {
	locker := Dial(b, redistest.StartN(b, 5), redlock.Options{})
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, locker)
	}
}

// BenchmarkCycleOneMasterStopped alternates between cycles with all masters well and cycles with one stopped, so that
// other load on the machine affects both. It reports the medians and their ratio.
func BenchmarkCycleOneMasterStopped(b *testing.B) {
	servers := redistest.StartN(b, 5)
	locker := Dial(b, servers, redlock.Options{})
	const turn = 200
	var healthy, stopped []time.Duration
	for b.Loop() {
		healthy = append(healthy, cycles(b, locker, turn)...)
		Must(b, servers[4].Pause())
		stopped = append(stopped, cycles(b, locker, turn)...)
		Must(b, servers[4].Resume())
		redistest.Eventually(b, Promptly, func() bool { return locker.Pending() == 0 },
			"the resumed master to be cleaned up")
	}
	b.ReportMetric(0, "ns/op") // of both kinds together it would mean nothing
	b.ReportMetric(float64(median(healthy).Nanoseconds()), "p50-healthy-ns")
	b.ReportMetric(float64(median(stopped).Nanoseconds()), "p50-stopped-ns")
	b.ReportMetric(float64(median(stopped))/float64(median(healthy)), "stopped/healthy")
}

func cycles(b *testing.B, locker *redlock.Locker, n int) []time.Duration {
	b.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		cycle(b, locker)
		took[i] = time.Since(began)
	}
	return took
}

func cycle(b *testing.B, locker *redlock.Locker) {
	b.Helper()
	lock, err := locker.Acquire(b.Context(), Key, 10*time.Second)
	Must(b, err)
	Must(b, lock.Release(b.Context()))
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkGrowthContexts lets a lock make n contexts: with parents that end at once, or with parents that go on.
func BenchmarkGrowthContexts(b *testing.B) {
	for name, parent := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"ended": context.WithCancel,
		"live": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithValue(ctx, growing{}, nil), func() {}
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := NewFakes(1).Locker(b, redlock.Options{})
			var lock *redlock.Lock
			b.Cleanup(func() { Must(b, lock.Release(context.Background())) })
			growth.Run(b, func(n int) any {
				if lock != nil {
					Must(b, lock.Release(b.Context()))
				}
				lock = Acquire(b, l, time.Duration(math.MaxInt64)/4)
				for range n {
					ctx, end := parent(b.Context())
					lock.Context(ctx)
					end()
				}
				return lock
			})
		})
	}
}

// growing is the key of values that make contexts differ.
type growing struct{}

// BenchmarkHandoff lets 32 goroutines of one Locker take turns with one key on five real masters. A goroutine does
// nothing while it holds the key.
func BenchmarkHandoff(b *testing.B) {
	locker := Dial(b, redistest.StartN(b, 5), redlock.Options{})
	for name, opts := range map[string][]redlock.Option{"plain": nil, "fenced": {redlock.Fenced()}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					lock, err := locker.Acquire(context.Background(), Key, 10*time.Second, opts...)
					if err == nil {
						err = lock.Release(context.Background())
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
