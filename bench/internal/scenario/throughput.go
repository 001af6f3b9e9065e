package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/limit"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

const (
	// ttl is the ttl of every acquisition in the throughput scenarios. It is long, so that no lock expires. Libraries
	// that derive their request timeout from it get half a second.
	ttl = 10 * time.Second

	// endTimeout limits the closing of a client, which may wait for late requests.
	endTimeout = 30 * time.Second
)

// warmup fills the connection pools. With a thousand workers that takes longer than a fifth of a short measurement. A
// shorter measurement is only a trial.
func (e *Env) warmup() time.Duration {
	return min(max(e.Duration/5, min(e.Duration, 200*time.Millisecond)), time.Second)
}

func (e *Env) load(workers int, prefix string) load.Load {
	return load.Load{
		Workers: workers, Duration: e.Duration, Warmup: e.warmup(), Bound: e.Bound, Rate: e.Rate, TTL: ttl,
		Prefix: prefix,
	}
}

func (e *Env) workersOr(standard ...int) []int {
	if len(e.Workers) > 0 {
		return e.Workers
	}
	return standard
}

// oneMaster is a subject that asks only one master, whatever happens to the others.
type oneMaster interface{ OneMaster() }

// oneProcess is a subject that differs from others only where goroutines of one process want the same key.
type oneProcess interface{ OneProcess() }

// between are the subjects for scenarios without competing goroutines in one process.
func (e *Env) between() []subject.Subject { return without[oneProcess](e.Subjects) }

// majorities are the subjects of between that go on without one server.
func (e *Env) majorities() []subject.Subject { return without[oneMaster](e.between()) }

// ours is this library's subject, if it is compared: one of the subjects that Kinds has, too.
func (e *Env) ours() []subject.Subject {
	return slices.DeleteFunc(e.between(), func(s subject.Subject) bool {
		return !slices.ContainsFunc(e.Kinds, func(k subject.Variant) bool { return k.Subject.Name() == s.Name() })
	})
}

// onMasters are the subjects that ask a majority of the common masters. Scenarios that change the number of masters or
// the network compare these subjects.
func (e *Env) onMasters() []subject.Subject { return without[subject.Hosted](e.majorities()) }

// without leaves out the subjects that are a T.
func without[T any](all []subject.Subject) []subject.Subject {
	return slices.DeleteFunc(slices.Clone(all), func(s subject.Subject) bool {
		_, is := s.(T)
		return is
	})
}

// with opens a client, has it used and closes it.
func with(ctx context.Context, at place, use func(subject.Client) error) (err error) {
	client, err := at.subject.Open(ctx, at.addrs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, []subject.Client{client})) }()
	return use(client)
}

func sliceOf(s load.Sample) result.Slice {
	return result.Slice{
		OpsPerSecond: s.OpsPerSecond, Latency: s.Cycle, Errors: s.Errors, FirstError: s.FirstError,
		Extra: map[string]float64{
			result.Allocs: s.AllocsPerOp, result.Bytes: s.BytesPerOp,
			"acquire_p50_us": measure.Micros(s.Acquire.Quantile(0.50)),
			"acquire_p99_us": measure.Micros(s.Acquire.Quantile(0.99)),
			"release_p50_us": measure.Micros(s.Release.Quantile(0.50)),
			"release_p99_us": measure.Micros(s.Release.Quantile(0.99)),
		},
		Count:         map[string]int64{"unfinished": s.Unfinished},
		Distributions: map[string]measure.Latency{"cycle": s.Cycle, "acquire": s.Acquire},
	}
}

// cycles measures plain acquire-and-release cycles on healthy masters.
func (e *Env) cycles(ctx context.Context, at place) (out result.Slice, err error) {
	err = with(ctx, at, func(c subject.Client) error {
		sample, err := e.load(at.workers, at.prefix).Run(ctx, c, nil)
		out = sliceOf(sample)
		return err
	})
	return out, err
}

// oneWorker measures cycles of one worker, whatever the flags say. With several workers, batches would make the number
// of allocations depend on the load.
func oneWorker(e *Env) ([]group, error) { return e.groups([]int{1}, e.between(), e.cycles), nil }

// limited is the subject of the machine's limit. It is never opened.
type limited struct{ subject.Subject }

func (limited) Name() string { return LimitName }

func distinct(e *Env) ([]group, error) {
	workers := e.workersOr(1, 16, 128, 1024)
	groups := e.groups(workers, e.between(), e.cycles)
	if e.Limit != nil {
		// The limit has no workers. Show it with the greatest number of workers, where the network is the limit.
		most := &groups[slices.Index(workers, slices.Max(workers))]
		most.entries = append(most.entries, entry{subject: limited{}, run: e.limit})
	}
	if ours := e.ours(); len(e.Workers) == 0 && len(ours) > 0 { // how evenly it serves a crowd
		groups = append(groups, e.groups([]int{8192}, ours, e.cycles)...)
	}
	return groups, nil
}

func (e *Env) limit(ctx context.Context, at place) (result.Slice, error) {
	rates, err := e.Limit(ctx, at.addrs, at.prefix, e.Duration)
	if errors.Is(err, limit.ErrNotInstalled) {
		return result.Slice{}, fmt.Errorf("%w: %w", ErrSkipped, err)
	}
	return result.Slice{
		OpsPerSecond: rates.Cycles(),
		Extra:        map[string]float64{"set_per_s": rates.Set, "evalsha_per_s": rates.Drop},
	}, err
}

func masters(e *Env) ([]group, error) {
	var groups []group
	for _, n := range masterCounts {
		if n > e.Fleet.Len() {
			e.Logf("masters: left out %d masters, there are %d", n, e.Fleet.Len())
			continue
		}
		for _, g := range e.groups(e.workersOr(1, 128), e.onMasters(), e.cycles) {
			g.masters = n
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("%w: %d masters are too few", ErrSkipped, e.Fleet.Len())
	}
	return groups, nil
}

// masterCounts are the numbers of masters that the scenario masters goes through.
var masterCounts = [...]int{3, 5, 7, 9}

// kinds compares the kinds of hold with plain holds, each kind as a subject.
func kinds(e *Env) ([]group, error) {
	if len(e.Kinds) == 0 {
		return nil, fmt.Errorf("%w: no kinds of hold to compare", ErrSkipped)
	}
	groups := e.groups(e.workersOr(1, 128), nil, nil)
	for i := range groups {
		for _, k := range e.Kinds {
			groups[i].entries = append(groups[i].entries, entry{subject: k.Subject, kind: k.Kind, run: e.cycles})
		}
	}
	return groups, nil
}
