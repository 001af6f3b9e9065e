// Package load drives one client of a subject with many workers, and measures its latencies and rates.
//
// # Coordinated omission
//
// A benchmark that records only completed operations hides the others. A worker that waits for a stalled operation also
// does not start the operations that it would have started in that time. Three rules avoid such errors.
//
// In the closed loop (Load.Rate is 0), which the throughput scenarios use, a worker starts its next cycle when its last
// one has ended. A cycle lasts from its first attempt to its success, however many attempts failed in between. When
// time is up, every worker ends its cycle within Load.Bound. A cycle that has not ended by then is recorded with its
// time so far, which is a lower bound, and counts as unfinished. So a stall shows in the maximum and in the cycles a
// second. It also shows in the percentiles, with the weight of a closed loop: once for each worker.
//
// In the open loop (Load.Rate is the cycles a second of all workers together) every cycle has a planned start. Its
// latency counts from the planned start, whether or not a worker was free then. So operations that queue behind a stall
// count as waiting, as for real users. The latency includes the wake-up of a timer: some ten microseconds to a
// millisecond, the same for every subject. That is why the closed loop is the default for latencies of a few hundred
// microseconds.
package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// keysPerWorker is how many keys a worker uses in turn. No fast subject waits for the slowest master. So with one key,
// the acquire after a release could meet a master that does not have the release yet.
const keysPerWorker = 8

// failurePause is a worker's pause after a failed attempt, so that it does not spin.
const failurePause = time.Millisecond

// Load is one measurement: so many workers, for so long.
type Load struct {
	Workers int
	// Duration is how long cycles are started and counted.
	Duration time.Duration
	// Warmup comes first. It runs the same loop, but cycles that end in it do not count.
	Warmup time.Duration
	// Bound is how long after Duration the workers may take to end their cycles.
	Bound time.Duration
	// Rate is how many cycles a second all workers together are to start; 0 is the closed loop.
	Rate float64
	// TTL is given to every acquire.
	TTL time.Duration
	// Prefix is the beginning of every key. Every run needs a new one, or the leftovers of the first run block the
	// second.
	Prefix string
}

// Sample holds the results of one Load.
type Sample struct {
	// Cycle is acquire and release together, Acquire and Release are its parts.
	Cycle, Acquire, Release measure.Latency
	// Ops is the number of cycles that ended. OpsPerSecond is their rate until the last one ended.
	Ops          int64
	OpsPerSecond float64
	// AllocsPerOp and BytesPerOp are the process's heap allocations by cycle, the harness's own (next to none)
	// included.
	AllocsPerOp, BytesPerOp float64
	// Errors counts attempts that failed. Unfinished counts cycles that had not ended when Bound was over.
	Errors, Unfinished int64
	// FirstError is the first of these errors, for the report.
	FirstError error
}

// Run drives client until the load is over or ctx ends. The error is about the harness: workers that never came
// back, or an invalid load. Errors of the subject are counted instead.
//
// Run calls heal once, after the measurement, while operations may still hang, for example in a stopped master. heal
// must make them end; it may be nil. Run then waits for its workers for at most 30 s.
func (l Load) Run(ctx context.Context, client subject.Client, heal func() error) (s Sample, err error) {
	if l.Workers < 1 || l.Duration <= 0 || l.Rate < 0 {
		return Sample{}, fmt.Errorf("load: %d workers for %v at %g cycles/s make no load", l.Workers, l.Duration,
			l.Rate)
	}
	r := newRun(l, client)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for w := range l.Workers {
		r.workers.Go(func() { r.work(ctx, w) })
	}
	ended := ended(&r.workers)

	var before, after runtime.MemStats
	Wait(ctx, time.Until(r.begin))
	runtime.ReadMemStats(&before)
	Wait(ctx, time.Until(r.end))
	runtime.ReadMemStats(&after)
	opsInWindow := r.ops.Load()
	waitFor(ctx, ended, l.Bound)

	s = r.sample(time.Now())
	if opsInWindow > 0 {
		s.AllocsPerOp = float64(after.Mallocs-before.Mallocs) / float64(opsInWindow)
		s.BytesPerOp = float64(after.TotalAlloc-before.TotalAlloc) / float64(opsInWindow)
	}
	cancel()
	if heal != nil {
		err = heal()
	}
	return s, errors.Join(err, drained(ended, "workers"))
}
