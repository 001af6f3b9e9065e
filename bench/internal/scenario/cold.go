package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// cold measures how long a new client takes to get its first lock. A program that takes one lock and ends pays this.
func cold(e *Env) ([]group, error) { return e.groups([]int{1}, e.between(), e.firstLocks), nil }

// firstLocks opens one client after another. Releases and closing do not count.
func (e *Env) firstLocks(ctx context.Context, at place) (result.Slice, error) {
	first, spent := measure.NewHistogram(), time.Duration(0)
	for n := 0; n == 0 || spent < e.Duration; n++ {
		began := time.Now()
		err := with(ctx, at, func(c subject.Client) error {
			handle, err := c.Acquire(ctx, fmt.Sprint(at.prefix, n), ttl)
			if err != nil {
				return err
			}
			took := time.Since(began)
			first.Record(took)
			spent += took
			return handle.Release(ctx)
		})
		if err != nil {
			return result.Slice{}, err
		}
	}
	latency := first.Snapshot()
	return result.Slice{
		OpsPerSecond: float64(latency.Count()) / spent.Seconds(), Latency: latency,
		Distributions: map[string]measure.Latency{"first lock": latency},
	}, nil
}
