// Package load drives one client of a subject with many workers and measures what they saw.
//
// # Coordinated omission
//
// A benchmark that only records the operations that came back hides the ones that did not, and a worker that waits for
// a stalled operation does not start the ones it would have started meanwhile. Three things here are against that.
//
// In the closed loop (Load.Rate is 0), which the throughput scenarios use, a worker starts its next cycle when the last
// one ended. A cycle is measured from its first attempt to its success, however many attempts failed in between.
// When time is up, every worker ends the cycle it is in, within Load.Bound; what has not ended by then is recorded with
// the time it has taken so far, which is a lower bound, and counted as unfinished. So a stall is at least in the
// maximum, in the number of cycles a second, and in the percentiles with the weight that a closed loop gives it:
// once a worker.
//
// In the open loop (Load.Rate is the cycles a second of all workers together) the start of every cycle is planned
// beforehand, and its latency is measured from the planned start, whether or not a worker was free then. Whatever queues
// behind a stall is measured as waiting, as its users would have. The wake-up of a timer is part of it (some ten
// microseconds to a millisecond, the same for every subject), which is why the closed loop is the default for latencies
// of a few hundred microseconds.
package load

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// keysPerWorker is how many keys a worker goes through in turn. With one, the acquire after a release could meet a
// master that has not had the release yet, since no fast subject waits for the slowest one.
const keysPerWorker = 8

// failurePause keeps a worker whose attempts fail at once from spinning.
const failurePause = time.Millisecond

// Load is one measurement: so many workers, for so long.
type Load struct {
	Workers int
	// Duration is how long cycles are started and counted.
	Duration time.Duration
	// Warmup comes before; cycles that end in it are not counted, but it is the same loop.
	Warmup time.Duration
	// Bound is how long the workers may take after Duration to end the cycle they are in.
	Bound time.Duration
	// Rate is how many cycles a second all workers together are to start; 0 is the closed loop.
	Rate float64
	// TTL is given to every acquire.
	TTL time.Duration
	// Prefix starts every key. No two runs may share one, or the first one's leftovers refuse the second.
	Prefix string
}

// Sample is what one Load saw.
type Sample struct {
	// Cycle is acquire and release together, Acquire and Release are its parts.
	Cycle, Acquire, Release measure.Latency
	// Ops is the number of cycles that ended, and OpsPerSecond what that is over the time until the last one ended.
	Ops          int64
	OpsPerSecond float64
	// AllocsPerOp and BytesPerOp are the process's heap allocations by cycle, the harness's own (next to none) included.
	AllocsPerOp, BytesPerOp float64
	// Errors counts attempts that failed. Unfinished counts cycles that had not ended when Bound was over.
	Errors, Unfinished int64
	// FirstError is one of them, to tell the reader what failed.
	FirstError error
}

// Run drives client until the load is over or ctx ends. heal is called once, when nothing
// is measured any more but operations may still hang (in a stopped master, say); it must make them end, and Run then
// waits for its workers for at most 30 s. It may be nil.
//
// The error is about the harness (workers that never came back, a load that makes no sense), never about the subject:
// its errors are counted.
func (l Load) Run(ctx context.Context, client subject.Client, heal func() error) (Sample, error) {
	if l.Workers < 1 || l.Duration <= 0 || l.Rate < 0 {
		return Sample{}, fmt.Errorf("load: %d workers for %v at %g cycles/s make no load", l.Workers, l.Duration, l.Rate)
	}
	r := newRun(l, client)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for w := range l.Workers {
		r.workers.Go(func() { r.work(ctx, w) })
	}
	ended := make(chan struct{})
	go func() {
		r.workers.Wait()
		close(ended)
	}()

	var before, after runtime.MemStats
	Wait(ctx, time.Until(r.begin))
	runtime.ReadMemStats(&before)
	Wait(ctx, time.Until(r.end))
	runtime.ReadMemStats(&after)
	opsInWindow := r.ops.Load()
	waitFor(ctx, ended, l.Bound)

	s := r.sample(time.Now())
	if opsInWindow > 0 {
		s.AllocsPerOp = float64(after.Mallocs-before.Mallocs) / float64(opsInWindow)
		s.BytesPerOp = float64(after.TotalAlloc-before.TotalAlloc) / float64(opsInWindow)
	}
	return s, r.finish(cancel, heal, ended)
}
