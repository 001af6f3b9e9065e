package load

import (
	"context"
	"errors"
	"fmt"
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
	load    Load
	client  subject.Client
	keys    [][]string
	launch  time.Time // the workers start
	begin   time.Time // their cycles start to count
	end     time.Time // no more cycles are started
	workers sync.WaitGroup

	cycle, acquire, release *measure.Recorder
	ops, errs               atomic.Int64
	planned                 atomic.Int64 // the next start of the open loop

	// started has, for each worker, the beginning of its cycle in nanoseconds after launch. It is idle between cycles,
	// and over when the measurement has ended.
	started []atomic.Int64

	mu       sync.Mutex
	lastEnd  time.Time // of the cycles that ended after end
	firstErr error
}

// The marks of a worker without a cycle.
const (
	idle int64 = 0
	over int64 = -1
)

func newRun(l Load, client subject.Client) *run {
	r := &run{
		load: l, client: client,
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

// If a subject ignores its context, its late operations end when the master answers again or with the client's own
// timeouts and retries. Half a minute is more than any client needs.
const drain = 30 * time.Second

func (r *run) finish(cancel context.CancelFunc, heal func() error, ended <-chan struct{}) error {
	cancel()
	var err error
	if heal != nil {
		err = heal()
	}
	if !waitFor(context.Background(), ended, drain) {
		err = errors.Join(err, fmt.Errorf("load: workers had not ended %v after the load", drain))
	}
	return err
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

// oneCycle acquires and releases key. It records the cycle if it ended inside the measured time, even if it started
// earlier: a cycle that began in the warm-up and hangs through the whole measurement must not be lost.
func (r *run) oneCycle(ctx context.Context, w int, key string, start time.Time) {
	mark := int64(start.Sub(r.launch)) + 1 // never 0, which is idle
	r.started[w].CompareAndSwap(idle, mark)
	handle := r.grant(ctx, key)
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

// grant asks until it gets the key; it returns nil if ctx ends first.
func (r *run) grant(ctx context.Context, key string) subject.Handle {
	for ctx.Err() == nil {
		h, err := r.client.Acquire(ctx, key, r.load.TTL)
		if err == nil {
			return h
		}
		r.failed(ctx, err)
		Wait(ctx, failurePause)
	}
	return nil
}

// failed counts an error, unless it is the end of the measurement.
func (r *run) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.errs.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.firstErr == nil {
		r.firstErr = err
	}
}

// sample closes the measurement.
func (r *run) sample(now time.Time) Sample {
	unfinished := r.abandon(now)
	r.mu.Lock()
	last, first := r.lastEnd, r.firstErr
	r.mu.Unlock()

	elapsed := max(r.load.Duration, last.Sub(r.begin))
	if unfinished > 0 {
		elapsed = max(elapsed, now.Sub(r.begin))
	}
	s := Sample{
		Cycle: r.cycle.Snapshot(), Acquire: r.acquire.Snapshot(), Release: r.release.Snapshot(),
		Ops: r.ops.Load(), Errors: r.errs.Load(), Unfinished: unfinished, FirstError: first,
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

// Wait returns after d or when ctx ends.
func Wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// waitFor reports whether done was closed within d.
func waitFor(ctx context.Context, done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}
