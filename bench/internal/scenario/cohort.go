package scenario

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

const (
	// cohortGoroutines want the one key of the scenario cohort.
	cohortGoroutines = 32
	// cohortProcesses share them where there is more than one.
	cohortProcesses = 4
)

// The kinds of the rows of the scenario cohort.
const (
	OneProcess    = "one process"
	FourProcesses = "four processes"
)

// passingWindow is how long this library passes a key on inside a process before others get it: see
// internal/hold/pass.go.
const passingWindow = min(ttl/10, 100*time.Millisecond)

// cohort has many goroutines want one key, in one process and in four. The holder does nothing while it has the key. A
// client takes the place of a process.
func cohort(e *Env) ([]group, error) {
	var groups []group
	for _, of := range []struct {
		kind      string
		processes int
	}{{OneProcess, 1}, {FourProcesses, cohortProcesses}} {
		run := func(ctx context.Context, at place) (result.Slice, error) { return e.passOn(ctx, at, of.processes) }
		g := e.groups([]int{cohortGoroutines}, e.Subjects, run)[0]
		for i := range g.entries {
			g.entries[i].kind = of.kind
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func (e *Env) passOn(ctx context.Context, at place, processes int) (out result.Slice, err error) {
	err = e.together(ctx, at, processes, func(clients []subject.Client, cycle time.Duration) error {
		crowd := load.Cohort{
			Goroutines: cohortGoroutines / processes, Duration: e.ContendFor, TTL: ttl, Key: at.prefix + "key",
		}
		seen, err := crowd.Run(ctx, clients)
		if err == nil {
			out = cohortSlice(seen, cycle, processes)
		}
		return err
	})
	return out, err
}

func cohortSlice(seen load.Passed, cycle time.Duration, processes int) result.Slice {
	us := measure.Micros
	out := result.Slice{
		OpsPerSecond: seen.PerSecond, Latency: seen.Wait, Errors: seen.Errors, FirstError: seen.FirstError,
		Extra: map[string]float64{
			"cycle_us": us(cycle), "moves_per_s": seen.MovesPerSecond, "fairness_within": seen.FairnessWithin,
		},
		Count:         map[string]int64{"overlaps": seen.Overlaps},
		Distributions: map[string]measure.Latency{"wait": seen.Wait},
	}
	if processes > 1 {
		// The holder does nothing, so a turn takes the window and the start of the next turn.
		out.Extra[result.Fairness] = seen.Fairness
		out.Worst = map[string]float64{"away_max_us": us(seen.Away.Max())}
		out.Extra["away_p50_us"] = us(seen.Away.Quantile(0.50))
		out.Extra["away_allowed_us"] = us(measure.IdealWait(processes, passingWindow, cycle))
		out.Distributions["away"] = seen.Away
	}
	return out
}
