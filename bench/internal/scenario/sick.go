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

// stopped first measures healthy masters. Then it stops one under the same client, and measures again from that moment,
// so the result includes the operations that meet the silence. If members have different roles, there is a row for each
// role.
func stopped(e *Env) ([]group, error) {
	if !e.Fleet.Ours() {
		return nil, fmt.Errorf("%w: %w", ErrSkipped, fleet.ErrNotOurs)
	}
	groups := e.groups(e.workersOr(1, 128), nil, nil)
	for i := range groups {
		for _, s := range e.majorities() {
			for _, role := range e.servers(s).Roles() {
				run := func(ctx context.Context, at place) (result.Slice, error) { return e.stop(ctx, at, role) }
				groups[i].entries = append(groups[i].entries, entry{subject: s, kind: role, run: run})
			}
		}
	}
	return groups, nil
}

// stop measures a subject, first with all servers and then while the one with this role is stopped.
func (e *Env) stop(ctx context.Context, at place, role string) (out result.Slice, err error) {
	err = with(ctx, at, func(c subject.Client) (err error) {
		healthy, err := e.load(at.workers, at.prefix+"healthy:").Run(ctx, c, nil)
		if err != nil {
			return err
		}
		victim, err := at.servers.Victim(ctx, role, e.Masters)
		if err != nil {
			return err
		}
		if err := at.servers.Pause(victim); err != nil {
			return err
		}
		resume := func() error { return at.servers.Resume(victim) }
		defer func() { err = errors.Join(err, resume()) }() // does nothing to one that goes on already
		l := e.load(at.workers, at.prefix+"stopped:")
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
	run := func(ctx context.Context, at place) (out result.Slice, err error) {
		var healthy load.Sample
		err = with(ctx, at, func(c subject.Client) (err error) {
			healthy, err = e.load(at.workers, at.prefix+"healthy:").Run(ctx, c, nil)
			return err
		})
		if err != nil {
			return out, err
		}
		at.prefix += "slow:"
		sick, err := e.delayed(ctx, at, delays)
		return withHealthy(sick, healthy), err
	}
	return e.groups(e.workersOr(1, 128), e.onMasters(), run), nil
}

// spread measures masters at growing distances.
func spread(e *Env) ([]group, error) {
	delays, quorum := distances(e.Masters)
	run := func(ctx context.Context, at place) (result.Slice, error) {
		out, err := e.delayed(ctx, at, delays)
		out.Extra["quorum_delay_us"] = measure.Micros(quorum)
		return out, err
	}
	return e.groups(e.workersOr(1, 128), e.onMasters(), run), nil
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
func (e *Env) delayed(ctx context.Context, at place, delays []time.Duration) (out result.Slice, err error) {
	out.Extra = map[string]float64{}
	err = behind(at, delays, func(at place, proxies *fleet.Delayed) error {
		alone, err := proxies.Pings(ctx, nil)
		if err != nil {
			return err
		}
		var beside []time.Duration
		err = with(ctx, at, func(c subject.Client) error {
			var pinged error
			var pinger sync.WaitGroup
			ended := make(chan struct{})
			pinger.Go(func() { beside, pinged = proxies.Pings(ctx, ended) })
			sample, err := e.load(at.workers, at.prefix).Run(ctx, c, nil)
			close(ended)
			pinger.Wait()
			out = sliceOf(sample)
			return errors.Join(err, pinged)
		})
		if err == nil {
			out.Extra["quorum_ping_us"], out.Extra["busy_ping_us"] = median(alone), median(beside)
		}
		return err
	})
	delete(out.Extra, result.Allocs)
	delete(out.Extra, result.Bytes)
	return out, err
}

// behind has a place used through proxies with these delays.
func behind(at place, delays []time.Duration, use func(place, *fleet.Delayed) error) (err error) {
	proxies, err := fleet.Delay(at.addrs, delays)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxies.Close()) }()
	at.addrs = proxies.Addrs()
	return use(at, proxies)
}

// median returns the median over the masters in microseconds: the fastest answer for which a quorum must wait.
func median(pings []time.Duration) float64 {
	slices.Sort(pings)
	return measure.Micros(pings[len(pings)/2])
}
