// Command servers runs this library, etcd's concurrency.Mutex and PostgreSQL's advisory locks through the same faults.
// Servers are killed and started again, clients are cut off, and clients are stopped for longer than a lock lives. It
// needs the programs etcd, postgres and redis-server. If a lock's server is not installed, the command leaves the lock
// out and says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// lock is a subject with the servers that it needs.
type lock struct {
	workload.Subject
	backend string
	servers int
	text    string
}

func locks() []lock {
	return []lock{
		{chaos.Redlock(), "process", 3, "this library with its default options, on 3 Redis servers"},
		{rivals.EtcdMutex(), "etcd", 3, "concurrency.Mutex of etcd's client with sessions of 2 s, on a cluster of 3"},
		{rivals.Advisory(), "postgres", 1, "pg_advisory_lock over pgx on one PostgreSQL server"},
	}
}

func main() {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	logging.Disable()
	var subjects []workload.Subject
	for _, l := range locks() {
		subjects = append(subjects, l.Subject)
	}
	workload.Main(subjects...)
	cli.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return cli.Status(stderr, "servers", run(ctx, args, stdout, stderr), cli.Failed)
	})
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("servers", flag.ContinueOnError)
	f.SetOutput(stderr)
	seed := f.Uint64("seed", 1, "seed of the workloads")
	seeds := f.Int("seeds", 1, "how many seeds, from -seed on; counts are added up")
	only := f.String("scenarios", "", "comma-separated `names` of scenarios (default all)")
	who := f.String("locks", "", "comma-separated `names` of locks (default all)")
	dir := f.String("reports", "", "keep each run's report and history in this `directory`")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *seed == 0 || *seeds < 1 {
		return errors.New("-seed and -seeds are at least 1")
	}
	if *dir == "" {
		made, err := os.MkdirTemp("", "redlock-servers-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }()
		*dir = made
	}
	chosen := slices.DeleteFunc(locks(), func(l lock) bool { return !named(*who, l.Name()) })
	for _, l := range chosen {
		fmt.Fprintf(stdout, "%-12s %s\n", l.Name(), l.text)
	}
	for n, p := range plans(1) {
		if !named(*only, p.Scenario) {
			continue
		}
		if err := compare(ctx, stdout, n, chosen, *seed, *seeds, *dir); err != nil {
			return err
		}
	}
	return nil
}

func named(names, name string) bool {
	return names == "" || slices.Contains(strings.Split(names, ","), name)
}

// compare runs the n-th plan for each lock and writes a table.
func compare(ctx context.Context, w io.Writer, n int, chosen []lock, seed uint64, seeds int, dir string) error {
	p := plans(1)[n]
	fmt.Fprintf(w, "\n%s: %s\n", p.Scenario, p.Text)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "lock\tacquired\toverlaps\tlost updates\trefused writes\tlongest outage\tp50\tp99\t  found")
	var missing []string
	for _, l := range chosen {
		var total sum
		for s := range uint64(seeds) {
			rep, err := once(ctx, l, plans(l.servers)[n], seed+s, dir)
			if errors.Is(err, masters.ErrUnavailable) {
				missing = append(missing, fmt.Sprintf("%s is left out: %v", l.Name(), err))
				break
			}
			if err = errors.Join(err, context.Cause(ctx)); err != nil {
				return fmt.Errorf("%s in %s: %w", l.Name(), p.Scenario, err)
			}
			total.add(rep)
		}
		if total.runs > 0 {
			fmt.Fprintf(t, "%s\t%s\n", l.Name(), &total)
		}
	}
	err := t.Flush()
	for _, line := range missing {
		fmt.Fprintf(w, "  %s\n", line)
	}
	return err
}

func once(ctx context.Context, l lock, p *plan.Plan, seed uint64, dir string) (*chaos.Report, error) {
	p.Seed = seed
	registry := masters.Standard()
	registry["etcd"], registry["postgres"] = openEtcd, openPostgres
	return chaos.Run(ctx, chaos.Config{
		Subject: l.Subject, Backend: l.backend, Backends: registry, Plan: p,
		Dir: filepath.Join(dir, p.Scenario, fmt.Sprint(seed), l.Name()),
	})
}

// sum adds up runs: counts are sums, times the worst of all.
type sum struct {
	runs, acquired, overlaps, lost, refused int
	outage, p50, p99                        float64
	found                                   map[string]int
}

func (s *sum) add(r *chaos.Report) {
	if s.found == nil {
		s.found = make(map[string]int)
	}
	s.runs++
	s.acquired += r.Acquisitions
	s.overlaps += r.Overlaps
	s.lost += r.LostUpdates
	s.refused += r.StaleWrites
	s.outage, s.p50, s.p99 = max(s.outage, r.OutageMSMax), max(s.p50, r.Latency.P50), max(s.p99, r.Latency.P99)
	for _, v := range r.Violations {
		name := v.Oracle
		if v.Unknown {
			name += " unknown"
		}
		s.found[name]++
	}
	if r.Verdict == "unknown" && len(r.Violations) == 0 {
		s.found["unknown: "+strings.Join(r.Reasons, "; ")]++
	}
	for _, v := range r.Allowed {
		s.found["("+v.Oracle+")"]++
	}
}

// String is the cells of a line.
func (s *sum) String() string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(s.found)) {
		found = append(found, fmt.Sprintf("%d %s", s.found[name], name))
	}
	if len(found) == 0 {
		found = []string{"nothing"}
	}
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%.0f ms\t%.1f ms\t%.0f ms\t  %s", s.acquired, s.overlaps, s.lost, s.refused,
		s.outage, s.p50, s.p99, strings.Join(found, ", "))
}
