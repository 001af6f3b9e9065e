package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// lateBy is how late the slow master answers.
const lateBy = 50 * time.Millisecond

// withHealthy adds the results with healthy masters, of the same client in the same run, to a slice about a sick
// master.
func withHealthy(sick result.Slice, healthy load.Sample) result.Slice {
	maps.Copy(sick.Extra, map[string]float64{
		"healthy_ops_per_s": healthy.OpsPerSecond,
		"healthy_p50_us":    measure.Micros(healthy.Cycle.Quantile(0.50)),
		"healthy_p99_us":    measure.Micros(healthy.Cycle.Quantile(0.99)),
	})
	return sick
}

// sickGroups are the groups of a scenario that compares these subjects with few and with many workers.
func (e *Env) sickGroups(subjects []subject.Subject, run func(subject.Subject, []string, int) measurement) ([]group,
	error,
) {
	var groups []group
	for _, w := range e.workersOr(1, 128) {
		g, err := e.group(w, subjects, func(s subject.Subject, addrs []string) measurement { return run(s, addrs, w) })
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// stopped first measures healthy masters. Then it stops one under the same client, and measures again from that moment,
// so the result includes the operations that meet the silence. If members have different roles, there is a row for each
// role.
func stopped(e *Env) ([]group, error) {
	if !e.Fleet.Ours() {
		return nil, fmt.Errorf("%w: %w", ErrSkipped, fleet.ErrNotOurs)
	}
	var groups []group
	for _, w := range e.workersOr(1, 128) {
		g := group{workers: w, masters: e.Masters}
		for _, s := range e.majorities() {
			on := e.fleet(s)
			for _, role := range on.Roles() {
				entry, err := e.entry(s, e.Masters, func(addrs []string) measurement {
					return func(ctx context.Context, prefix string) (result.Slice, error) {
						return e.stop(ctx, s, addrs, w, func() (int, error) { return on.Victim(ctx, role, e.Masters) },
							prefix)
					}
				})
				if err != nil {
					return nil, err
				}
				entry.kind = role
				g.entries = append(g.entries, entry)
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// stop measures a subject, first with all servers and then from the moment at which the victim stands still.
func (e *Env) stop(
	ctx context.Context, s subject.Subject, addrs []string, workers int, choose func() (int, error), prefix string,
) (out result.Slice, err error) {
	on := e.fleet(s)
	err = with(ctx, s, addrs, func(c subject.Client) (err error) {
		healthy, err := e.load(workers, prefix+"healthy:").Run(ctx, c, nil)
		if err != nil {
			return err
		}
		victim, err := choose()
		if err != nil {
			return err
		}
		if err := on.Pause(victim); err != nil {
			return err
		}
		resume := func() error { return on.Resume(victim) }
		defer func() { err = errors.Join(err, resume()) }() // does nothing to one that goes on already
		l := e.load(workers, prefix+"stopped:")
		l.Warmup = 0
		sick, err := l.Run(ctx, c, resume)
		out = withHealthy(sliceOf(sick), healthy)
		return err
	})
	return out, err
}

// slow measures healthy masters, and then the same with one master behind a proxy that delays its answers.
func slow(e *Env) ([]group, error) {
	delays := make([]time.Duration, e.Masters)
	delays[e.Masters/2] = lateBy
	return e.sickGroups(e.onMasters(), func(s subject.Subject, addrs []string, workers int) measurement {
		return func(ctx context.Context, prefix string) (out result.Slice, err error) {
			var healthy load.Sample
			err = with(ctx, s, addrs, func(c subject.Client) (err error) {
				healthy, err = e.load(workers, prefix+"healthy:").Run(ctx, c, nil)
				return err
			})
			if err != nil {
				return out, err
			}
			sick, err := e.delayed(ctx, s, addrs, delays, workers, prefix+"slow:")
			return withHealthy(sick, healthy), err
		}
	})
}

// spread measures masters at growing distances.
func spread(e *Env) ([]group, error) {
	delays, quorum := distances(e.Masters)
	return e.sickGroups(e.onMasters(), func(s subject.Subject, addrs []string, workers int) measurement {
		return func(ctx context.Context, prefix string) (result.Slice, error) {
			out, err := e.delayed(ctx, s, addrs, delays, workers, prefix)
			out.Extra["quorum_delay_us"] = measure.Micros(quorum)
			return out, err
		}
	})
}

// distances returns the delays of n masters, 2, 4, 6 ms and so on, and the delay of the nearest quorum. The delays are
// not in order, so that no subject profits from the position of the nearest master.
func distances(n int) (delays []time.Duration, quorum time.Duration) {
	grow := make([]time.Duration, n)
	for i := range grow {
		grow[i] = time.Duration(2*(i+1)) * time.Millisecond
	}
	return slices.Concat(grow[n/2:], grow[:n/2]), grow[n/2]
}

// delayed measures a subject through proxies, without allocations, because the proxies allocate in the same process.
// With many workers, proxies, servers and client compete for the cores, so an answer is later than its delay, for every
// subject. To show by how much, a separate connection sends a PING every few milliseconds during the measurement.
func (e *Env) delayed(
	ctx context.Context, s subject.Subject, addrs []string, delays []time.Duration, workers int, prefix string,
) (out result.Slice, err error) {
	out.Extra = map[string]float64{}
	proxies, err := fleet.Delay(addrs, delays)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, proxies.Close()) }()
	alone, err := proxies.Pings(ctx, nil)
	if err != nil {
		return out, err
	}
	var beside []time.Duration
	err = with(ctx, s, proxies.Addrs(), func(c subject.Client) error {
		var pinged error
		var pinger sync.WaitGroup
		ended := make(chan struct{})
		pinger.Go(func() { beside, pinged = proxies.Pings(ctx, ended) })
		sample, err := e.load(workers, prefix).Run(ctx, c, nil)
		close(ended)
		pinger.Wait()
		out = sliceOf(sample)
		return errors.Join(err, pinged)
	})
	out.Allocs, out.Bytes = nil, nil
	if err == nil {
		out.Extra["quorum_ping_us"], out.Extra["busy_ping_us"] = median(alone), median(beside)
	}
	return out, err
}

// median returns the median over the masters in microseconds: the fastest answer for which a quorum must wait.
func median(pings []time.Duration) float64 {
	slices.Sort(pings)
	return measure.Micros(pings[len(pings)/2])
}
