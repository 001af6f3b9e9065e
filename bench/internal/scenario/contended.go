package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/parallel"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// contended has clients that know nothing of each other want one key, as separate processes would. Just before, its
// first client measures cycles without contention, as the reference for the gap and for the perfect queue. It measures
// them in a closed loop, and again with a pause before each half, as holders and waiters pause. The difference is the
// time to wake an idle machine, client and masters, twice.
func contended(e *Env) ([]group, error) {
	return e.groups([]int{e.Contenders}, e.between(), e.contend), nil
}

// distant is contended with masters at growing distances. There a handoff takes the travel time of its messages, and
// almost nothing else.
func distant(e *Env) ([]group, error) {
	delays, quorum := distances(e.Masters)
	run := func(ctx context.Context, at place) (out result.Slice, err error) {
		err = behind(at, delays, func(at place, _ *fleet.Delayed) error {
			out, err = e.contend(ctx, at)
			return err
		})
		if err == nil {
			out.Extra["quorum_delay_us"] = measure.Micros(quorum)
			out.Extra["gap_round_trips"] = out.Extra["gap_p50_us"] / measure.Micros(quorum)
		}
		return out, err
	}
	return e.groups([]int{e.Contenders}, e.onMasters(), run), nil
}

func (e *Env) contend(ctx context.Context, at place) (out result.Slice, err error) {
	err = e.together(ctx, at, e.Contenders, func(clients []subject.Client, cycle time.Duration) error {
		rested, err := restedCycle(ctx, clients[0], at.prefix+"rested", e.Hold)
		if err != nil {
			return err
		}
		contention := load.Contention{Hold: e.Hold, Duration: e.ContendFor, TTL: ttl, Key: at.prefix + "key"}
		seen, err := contention.Run(ctx, clients)
		if err != nil {
			return err
		}
		out = contendedSlice(seen, cycle, e.Contenders)
		out.Extra["contended_for_s"] = e.ContendFor.Seconds()
		out.Extra["rested_cycle_us"] = measure.Micros(rested)
		return nil
	})
	return out, err
}

// together opens n clients of a subject, has them used and closes them. use also gets the median of one client's cycle
// without contention, in a closed loop.
func (e *Env) together(ctx context.Context, at place, n int, use func(clients []subject.Client,
	cycle time.Duration) error,
) (err error) {
	clients, err := openAll(ctx, at, n)
	defer func() { err = errors.Join(err, closeAll(ctx, clients)) }()
	if err != nil {
		return err
	}
	alone := e.load(1, at.prefix+"alone:")
	alone.Rate = 0
	cycle, err := alone.Run(ctx, clients[0], nil)
	if err != nil {
		return err
	}
	return use(clients, cycle.Cycle.Quantile(0.50))
}

// restedCycles is how many cycles the median of restedCycle is taken from.
const restedCycles = 101

// restedCycle returns the time of an acquisition and a release, the median of some, with a rest of the client before
// each.
func restedCycle(ctx context.Context, client subject.Client, key string, rest time.Duration) (time.Duration, error) {
	took := make([]float64, 0, restedCycles)
	for range restedCycles {
		load.Wait(ctx, rest)
		start := time.Now()
		handle, err := client.Acquire(ctx, key, ttl)
		acquired := time.Since(start)
		if err != nil {
			return 0, fmt.Errorf("a cycle after a rest: %w", err)
		}
		load.Wait(ctx, rest)
		start = time.Now()
		if err := handle.Release(ctx); err != nil {
			return 0, fmt.Errorf("a cycle after a rest: %w", err)
		}
		took = append(took, float64(acquired+time.Since(start)))
	}
	return time.Duration(measure.SpreadOf(took).Median), nil
}

func contendedSlice(seen load.Handoff, cycle time.Duration, contenders int) result.Slice {
	us := measure.Micros
	return result.Slice{
		OpsPerSecond: seen.GrantsPerSecond, Latency: seen.Wait, Errors: seen.Errors, FirstError: seen.FirstError,
		Extra: map[string]float64{
			result.Fairness: seen.Fairness,
			"gap_p50_us":    us(seen.Gaps.Quantile(0.50)), "gap_p99_us": us(seen.Gaps.Quantile(0.99)),
			"gap_max_us":  us(seen.Gaps.Max()),
			"wait_p50_us": us(seen.Wait.Quantile(0.50)), "wait_p99_us": us(seen.Wait.Quantile(0.99)),
			"wait_max_us":   us(seen.Wait.Max()),
			"ideal_wait_us": us(measure.IdealWait(contenders, seen.MeanHold, cycle)),
			"cycle_us":      us(cycle), "hold_us": us(seen.MeanHold), "handoffs_per_s": seen.GrantsPerSecond,
		},
		Count:         map[string]int64{"overlaps": seen.Overlaps, "waiting_at_end": seen.Waiting},
		Distributions: map[string]measure.Latency{"gap": seen.Gaps, "wait": seen.Wait},
	}
}

// openAll opens n clients side by side. Those that were opened are returned in any case, for closeAll.
func openAll(ctx context.Context, at place, n int) ([]subject.Client, error) {
	clients := make([]subject.Client, n)
	return clients, parallel.Each(n, func(i int) (err error) {
		clients[i], err = at.subject.Open(ctx, at.addrs)
		return err
	})
}

// closeAll closes clients side by side. An end of ctx does not end that.
func closeAll(ctx context.Context, clients []subject.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := parallel.Each(len(clients), func(i int) error {
		if clients[i] == nil {
			return nil // it was not opened
		}
		return clients[i].Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
