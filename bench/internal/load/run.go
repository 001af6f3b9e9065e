package load

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// run is one Load in progress.
type run struct {
	asker
	load    Load
	client  subject.Client
	keys    [][]string
	launch  time.Time // the workers start
	begin   time.Time // their cycles start to count
	end     time.Time // no more cycles are started
	workers sync.WaitGroup

	cycle, acquire, release *measure.Recorder
	ops                     atomic.Int64
	planned                 atomic.Int64 // the next start of the open loop

	// started has, for each worker, the beginning of its cycle in nanoseconds after launch. It is idle between cycles,
	// and over when the measurement has ended.
	started []atomic.Int64

	mu      sync.Mutex
	lastEnd time.Time // of the cycles that ended after end
}

// The marks of a worker without a cycle.
const (
	idle int64 = 0
	over int64 = -1
)

func newRun(l Load, client subject.Client) *run {
	r := &run{
		asker: asker{ttl: l.TTL}, load: l, client: client,
		cycle: measure.NewRecorder(), acquire: measure.NewRecorder(), release: measure.NewRecorder(),
		started: make([]atomic.Int64, l.Workers), keys: make([][]string, l.Workers),
	}
	for w := range r.keys {
		r.keys[w] = make([]string, keysPerWorker)
		for i := range r.keys[w] {
			r.keys[w][i] = l.Prefix + strconv.Itoa(w) + "." + strconv.Itoa(i)
		}
	}
	runtime.GC() // this subject must not pay for earlier garbage
	r.launch = time.Now()
	r.begin = r.launch.Add(l.Warmup)
	r.end = r.begin.Add(l.Duration)
	return r
}

func (r *run) work(ctx context.Context, w int) {
	for i := 0; ; i++ {
		start := time.Now()
		if r.load.Rate > 0 {
			start = r.plan(r.planned.Add(1) - 1)
		}
		if !start.Before(r.end) || ctx.Err() != nil {
			return
		}
		Wait(ctx, time.Until(start))
		r.oneCycle(ctx, w, r.keys[w][i%keysPerWorker], start)
	}
}

// plan returns the planned start of the nth cycle of the open loop.
func (r *run) plan(nth int64) time.Time {
	return r.launch.Add(time.Duration(float64(nth) / r.load.Rate * float64(time.Second)))
}

// oneCycle acquires and releases key. It records the cycle if it ended inside the measured time. The cycle may have
// started earlier: one that hangs from the warm-up to the end of the measurement must not be lost.
func (r *run) oneCycle(ctx context.Context, w int, key string, start time.Time) {
	mark := int64(start.Sub(r.launch)) + 1 // never 0, which is idle
	r.started[w].CompareAndSwap(idle, mark)
	handle := r.grant(ctx, r.client, key)
	if handle == nil {
		return // ctx ended; the mark stays, so the cycle counts as unfinished
	}
	granted := time.Now()
	if err := handle.Release(ctx); err != nil {
		r.failed(ctx, err)
	}
	now := time.Now()
	// The swap fails when the measurement is over: the cycle was already counted as unfinished.
	if !r.started[w].CompareAndSwap(mark, idle) || now.Before(r.begin) {
		return
	}
	r.cycle.Record(w, now.Sub(start))
	r.acquire.Record(w, granted.Sub(start))
	r.release.Record(w, now.Sub(granted))
	r.ops.Add(1)
	if now.After(r.end) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if now.After(r.lastEnd) {
			r.lastEnd = now
		}
	}
}

// sample closes the measurement.
func (r *run) sample(now time.Time) Sample {
	unfinished := r.abandon(now)
	r.mu.Lock()
	last := r.lastEnd
	r.mu.Unlock()

	elapsed := max(r.load.Duration, last.Sub(r.begin))
	if unfinished > 0 {
		elapsed = max(elapsed, now.Sub(r.begin))
	}
	s := Sample{
		Cycle: r.cycle.Snapshot(), Acquire: r.acquire.Snapshot(), Release: r.release.Snapshot(),
		Ops: r.ops.Load(), Errors: r.Count(), Unfinished: unfinished, FirstError: r.First(),
	}
	s.OpsPerSecond = float64(s.Ops) / elapsed.Seconds()
	return s
}

// abandon records the cycles that still run, with their time so far. In the open loop it also records those that should
// have started before the end and found no free worker. It returns the number of both.
func (r *run) abandon(now time.Time) int64 {
	unfinished := int64(0)
	record := func(w int, start time.Time) {
		if !start.Before(now) {
			return // a future start of the open loop
		}
		unfinished++
		r.cycle.Record(w, now.Sub(start))
		r.acquire.Record(w, now.Sub(start))
	}
	for w := range r.started {
		if mark := r.started[w].Swap(over); mark > idle {
			record(w, r.launch.Add(time.Duration(mark-1)))
		}
	}
	if r.load.Rate == 0 {
		return unfinished
	}
	for nth := r.planned.Load(); r.plan(nth).Before(r.end); nth++ {
		record(int(nth), r.plan(nth))
	}
	return unfinished
}
