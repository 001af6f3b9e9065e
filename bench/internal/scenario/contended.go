package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// contended has clients that know nothing of each other want one key, as separate processes would. Just before, its
// first client measures cycles without contention, as the reference for the gap and for the perfect queue. It measures
// them in a closed loop, and again with a pause before each half, as holders and waiters pause. The difference is the
// time to wake an idle machine, client and masters, twice.
func contended(e *Env) ([]group, error) {
	g, err := e.group(e.Contenders, e.between(), func(s subject.Subject, addrs []string) measurement {
		return func(ctx context.Context, prefix string) (result.Slice, error) {
			return e.contend(ctx, s, addrs, prefix)
		}
	})
	return []group{g}, err
}

// distant is contended with masters at growing distances. There a handoff takes the travel time of its messages, and
// almost nothing else.
func distant(e *Env) ([]group, error) {
	delays, quorum := distances(e.Masters)
	g, err := e.group(e.Contenders, e.onMasters(), func(s subject.Subject, addrs []string) measurement {
		return func(ctx context.Context, prefix string) (out result.Slice, err error) {
			proxies, err := fleet.Delay(addrs, delays)
			if err != nil {
				return out, err
			}
			defer func() { err = errors.Join(err, proxies.Close()) }()
			if out, err = e.contend(ctx, s, proxies.Addrs(), prefix); err == nil {
				out.Extra["quorum_delay_us"] = measure.Micros(quorum)
				out.Extra["gap_round_trips"] = out.Extra["gap_p50_us"] / measure.Micros(quorum)
			}
			return out, err
		}
	})
	return []group{g}, err
}

func (e *Env) contend(ctx context.Context, s subject.Subject, addrs []string, prefix string) (out result.Slice,
	err error,
) {
	clients, err := openAll(ctx, s, addrs, e.Contenders)
	defer func() { err = errors.Join(err, closeAll(ctx, clients)) }()
	if err != nil {
		return out, err
	}
	alone := e.load(1, prefix+"alone:")
	alone.Rate = 0
	cycle, err := alone.Run(ctx, clients[0], nil)
	if err != nil {
		return out, err
	}
	rested, err := restedCycle(ctx, clients[0], prefix+"rested", e.Hold)
	if err != nil {
		return out, err
	}
	contention := load.Contention{Hold: e.Hold, Duration: e.ContendFor, TTL: ttl, Key: prefix + "key"}
	seen, err := contention.Run(ctx, clients, nil)
	if err != nil {
		return out, err
	}
	out = contendedSlice(seen, cycle.Cycle.Quantile(0.50), e.Contenders)
	out.Extra["contended_for_s"] = e.ContendFor.Seconds()
	out.Extra["rested_cycle_us"] = measure.Micros(rested)
	return out, nil
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
		OpsPerSecond: seen.GrantsPerSecond, Latency: seen.Wait, Fairness: &seen.Fairness,
		Errors: seen.Errors, FirstError: seen.FirstError,
		Extra: map[string]float64{
			"gap_p50_us": us(seen.Gaps.Quantile(0.50)), "gap_p99_us": us(seen.Gaps.Quantile(0.99)),
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
func openAll(ctx context.Context, s subject.Subject, addrs []string, n int) ([]subject.Client, error) {
	clients := make([]subject.Client, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { clients[i], errs[i] = s.Open(ctx, addrs) })
	}
	wg.Wait()
	return clients, errors.Join(errs...)
}

func closeAll(ctx context.Context, clients []subject.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		if c != nil {
			wg.Go(func() { errs[i] = c.Close(ctx) })
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
