package scenario

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// renewers acquire and release the holds; more would only wait for each other.
const renewers = 128

// renewed keeps very many holds alive for longer than their ttl. Then it counts the remaining ones on the masters,
// without relying on the library. Only subjects that renew by themselves take part.
func renewed(e *Env) ([]group, error) {
	return e.groups([]int{renewers}, e.onMasters(), e.renew), nil
}

func (e *Env) renew(ctx context.Context, at place) (out result.Slice, err error) {
	err = with(ctx, at, func(c subject.Client) error {
		renewer, ok := c.(subject.Renewer)
		if !ok {
			return fmt.Errorf("%w: %s does not renew by itself", ErrSkipped, at.subject.Name())
		}
		r := &renewal{holds: e.Holds, ttl: e.renewedTTL(), addrs: at.addrs, prefix: at.prefix}
		out, err = r.run(ctx, renewer)
		return err
	})
	return out, err
}

// renewedTTL returns a ttl for the holds. It is so short that every hold is renewed several times while the bench
// watches. It is so long that a machine of two cores can renew 100,000 holds, each after a third of the ttl.
func (e *Env) renewedTTL() time.Duration { return max(10*e.Duration, time.Second) }

type renewal struct {
	holds  int
	ttl    time.Duration
	addrs  []string
	prefix string

	keys    []string
	handles []subject.RenewedHandle
	failed  load.Failures
}

func (r *renewal) run(ctx context.Context, c subject.Renewer) (result.Slice, error) {
	// Keys and handles belong to the harness. Allocate them before the first look at the heap.
	r.keys, r.handles = make([]string, r.holds), make([]subject.RenewedHandle, r.holds)
	for i := range r.keys {
		r.keys[i] = r.prefix + strconv.Itoa(i)
	}
	if _, err := r.each(ctx, min(renewers, r.holds), r.cycle(c)); err != nil {
		return result.Slice{}, err // the connections are open now and do not count as part of a hold
	}
	heap, goroutines := liveHeap(), runtime.NumGoroutine()
	latency := measure.NewRecorder()
	elapsed, err := r.each(ctx, r.holds, r.take(c, latency))
	if err != nil {
		return result.Slice{}, err
	}
	grownHeap, grownGoroutines := liveHeap()-heap, runtime.NumGoroutine()-goroutines
	cpu, err := r.watch(ctx)
	if err != nil {
		return result.Slice{}, err
	}
	lost, err := r.lost(ctx)
	if err != nil {
		return result.Slice{}, err
	}
	if _, err := r.each(ctx, r.holds, r.drop); err != nil {
		return result.Slice{}, err
	}
	n := float64(r.holds)
	return result.Slice{
		OpsPerSecond: n / elapsed.Seconds(), Latency: latency.Snapshot(), Errors: r.failed.Count(),
		FirstError: r.failed.First(),
		Extra: map[string]float64{
			"holds": n, "heap_per_hold_bytes": grownHeap / n, "goroutines": float64(grownGoroutines),
			"cpu_cores": cpu, "ttl_us": measure.Micros(r.ttl),
		},
		Count: map[string]int64{"lost": lost},
	}, nil
}

// each calls do for the holds 0 to n-1 from several goroutines and returns the total time.
func (r *renewal) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) (time.Duration, error) {
	start := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(renewers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				r.failed.Note(do(ctx, i))
			}
		})
	}
	wg.Wait()
	return time.Since(start), ctx.Err()
}

// cycle takes and releases a lock on a key that is not counted.
func (r *renewal) cycle(c subject.Renewer) func(context.Context, int) error {
	return func(ctx context.Context, i int) error {
		h, err := c.AcquireRenewed(ctx, r.prefix+"warm:"+strconv.Itoa(i), r.ttl)
		if err != nil {
			return err
		}
		return h.Release(ctx)
	}
}

func (r *renewal) take(c subject.Renewer, latency *measure.Recorder) func(context.Context, int) error {
	return func(ctx context.Context, i int) (err error) {
		start := time.Now()
		r.handles[i], err = c.AcquireRenewed(ctx, r.keys[i], r.ttl)
		latency.Record(i, time.Since(start))
		return err
	}
}

func (r *renewal) drop(ctx context.Context, i int) error {
	if r.handles[i] == nil {
		return nil // the hold was never granted, and counted as an error then
	}
	return r.handles[i].Release(ctx)
}

// watched is the number of ttls for which the holds are left alone: each is renewed a dozen times. With the usual ttl
// of 30 s it is two minutes.
const watched = 4

// watch leaves the holds alone for so long that only renewed ones are alive afterwards. It returns how many cores this
// process used in that time.
func (r *renewal) watch(ctx context.Context) (float64, error) {
	before, err := processorTime()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if load.Wait(ctx, watched*r.ttl); ctx.Err() != nil {
		return 0, ctx.Err()
	}
	after, err := processorTime()
	return (after - before).Seconds() / time.Since(start).Seconds(), err
}

// lost counts the holds that report their loss, that were never granted, or that a majority of the masters no longer
// has.
func (r *renewal) lost(ctx context.Context) (int64, error) {
	there := make([]int, r.holds)
	for _, addr := range r.addrs {
		if err := r.count(ctx, addr, there); err != nil {
			return 0, fmt.Errorf("count the keys on %s: %w", addr, err)
		}
	}
	lost := int64(0)
	for i, h := range r.handles {
		switch {
		case h == nil, there[i] < len(r.addrs)/2+1:
			lost++
		default:
			select {
			case <-h.Done():
				lost++
			default:
			}
		}
	}
	return lost, nil
}

func (r *renewal) count(ctx context.Context, addr string, there []int) (err error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { err = errors.Join(err, rdb.Close()) }()
	const chunk = 1000
	for from := 0; from < len(r.keys); from += chunk {
		keys := r.keys[from:min(from+chunk, len(r.keys))]
		answers, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, k := range keys {
				p.Exists(ctx, k)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, a := range answers {
			there[from+i] += int(a.(*redis.IntCmd).Val())
		}
	}
	return nil
}

// liveHeap returns the memory in use without garbage. The second collection frees the memory that finalizers kept.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
