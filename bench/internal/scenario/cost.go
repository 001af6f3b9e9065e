package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// cost measures the cost of a cycle for each master and for the client, of every majority subject and every kind of
// hold. A lock that costs its masters less leaves more for others, however fast it is by itself. The figures are
// processor time, not elapsed time, so they hardly depend on other programs of the machine.
func cost(e *Env) ([]group, error) {
	groups := e.groups(e.workersOr(1, 64), e.onMasters(), e.costs)
	for i := range groups {
		for _, k := range e.Kinds {
			if k.Kind != subject.Plain { // that is this library's row among the subjects
				groups[i].entries = append(groups[i].entries, entry{subject: k.Subject, kind: k.Kind, run: e.costs})
			}
		}
	}
	return groups, nil
}

// shortKey is the length of a shortened prefix. A cycle's bytes contain the key several times, and most users' keys
// are short.
const shortKey = 7

// costs measures cycles and their cost for each master that a cycle asks.
func (e *Env) costs(ctx context.Context, at place) (out result.Slice, err error) {
	prefix := at.prefix[max(0, len(at.prefix)-shortKey):]
	m := openMeters(at.addrs)
	defer func() { err = errors.Join(err, m.close()) }()
	err = with(ctx, at, func(c subject.Client) error {
		// The warm-up uses the same keys, because the first fenced lock on a key costs more than the next.
		warm := e.load(at.workers, prefix)
		warm.Duration, warm.Warmup = max(e.warmup(), e.Duration/2), 0
		if _, err := warm.Run(ctx, c, nil); err != nil {
			return err
		}
		before, err := m.read(ctx)
		if err != nil {
			return err
		}
		counted := e.load(at.workers, prefix)
		counted.Warmup = 0
		sample, err := counted.Run(ctx, c, nil)
		if err != nil {
			return err
		}
		after, err := m.read(ctx)
		out = sliceOf(sample)
		if sample.Ops > 0 {
			after.less(before).by(float64(sample.Ops), float64(at.masters), out.Extra)
		}
		return err
	})
	return out, err
}

// spent is the use of resources by the masters and by this process so far.
type spent struct {
	commands  float64 // counted by Redis, including commands of scripts
	in, out   float64 // bytes
	masterCPU float64 // seconds, of all masters together
	clientCPU float64
}

func (s spent) less(before spent) spent {
	return spent{
		s.commands - before.commands, s.in - before.in, s.out - before.out,
		s.masterCPU - before.masterCPU, s.clientCPU - before.clientCPU,
	}
}

// by adds the cost of one cycle to extra: on each of the masters that a cycle asks, and in the client.
func (s spent) by(cycles, asked float64, extra map[string]float64) {
	each := cycles * asked
	extra["commands"] = s.commands / each
	extra["bytes_in"], extra["bytes_out"] = s.in/each, s.out/each
	extra["master_cpu_us"], extra["client_cpu_us"] = s.masterCPU/each*1e6, s.clientCPU/cycles*1e6
}

// meters read the masters' statistics, with one connection to each. A reading costs some ten kilobytes and no counted
// command.
type meters []*redis.Client

func openMeters(addrs []string) (m meters) {
	for _, addr := range addrs {
		m = append(m, redis.NewClient(&redis.Options{Addr: addr}))
	}
	return m
}

func (m meters) close() (err error) {
	for _, c := range m {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (m meters) read(ctx context.Context) (sum spent, err error) {
	for _, c := range m {
		text, err := c.Info(ctx, "all").Result()
		if err != nil {
			return sum, fmt.Errorf("what a master has done: %w", err)
		}
		if err := sum.add(text); err != nil {
			return sum, err
		}
	}
	cpu, err := processorTime()
	sum.clientCPU = cpu.Seconds()
	return sum, err
}

// add adds the figures in one master's INFO.
func (s *spent) add(info string) error {
	wanted := map[string]*float64{
		"total_net_input_bytes": &s.in, "total_net_output_bytes": &s.out, "used_cpu_user": &s.masterCPU,
		"used_cpu_sys": &s.masterCPU,
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		sum := wanted[name]
		if strings.HasPrefix(name, "cmdstat_") && name != "cmdstat_info" {
			value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			sum = &s.commands
		}
		if sum == nil {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("INFO: %s: %w", name, err)
		}
		*sum += n
		delete(wanted, name)
	}
	if len(wanted) > 0 {
		return fmt.Errorf("INFO lacks %d of the fields that say what a master has done", len(wanted))
	}
	return nil
}
