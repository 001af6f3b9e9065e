// Command bench compares the speed of this library with its rivals on redis-server processes that it starts. If etcd or
// PostgreSQL is installed, it also compares locks on an etcd cluster and on a PostgreSQL server.
//
//	go run ./bench                                      everything; takes a good half hour
//	go run ./bench -scenario uncontended,distinct       some of it
//	go run ./bench -duration 500ms -repeat 1            a quick look
//	go run ./bench -check                               and compare the outcome with what this library promises
//	go run ./bench -json out.json -plots DIR            for machines and for people
//
// Numbers depend on the machine and its other load. Ratios within one run hardly do, because all subjects take turns.
// The package internal/load explains how latencies are measured, and how operations count that never end.
//
// The exit status is 0 if everything was measured. It is 1 if the benchmark failed, or if -check found a result worse
// than "at least" or a missing measurement. A missed goal is no failure. It is 2 if the flags are invalid.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/limit"
	"github.com/seed-624411e5/redlock/bench/internal/report"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/bench/internal/target"
)

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if err != nil {
		return cli.Status(stderr, "bench", err, cli.Usage)
	}
	return cli.Status(stderr, "bench", bench(ctx, cfg, stdout, stderr), cli.Failed)
}

var errMissed = errors.New("a target was missed, or has no rows to look at")

// bench measures, and shows the results so far even after a failure.
func bench(ctx context.Context, cfg config, stdout, stderr io.Writer) (err error) {
	masters, err := cfg.fleet(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, masters.Close()) }()
	own, subjects, err := host(ctx, cfg, masters.Ours())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.close()) }()
	cfg.Fleet, cfg.Hosts, cfg.Subjects, cfg.Kinds = masters, own.fleets, subjects, subject.Kinds()
	cfg.Limit, cfg.Logf = limit.Measure, cli.Logf(stderr)
	fmt.Fprintln(stdout, strings.Join(append(describe(ctx, cfg, masters), own.facts...), "\n"))

	rows, ran, err := measure(ctx, cfg.scenarios, &cfg.Env)
	return errors.Join(err, show(cfg, rows, ran, stdout))
}

// measure runs the scenarios one after another and reports those that can't run here. It ends at the first failure and
// returns the rows so far.
func measure(ctx context.Context, scenarios []scenario.Scenario, env *scenario.Env) ([]result.Row, map[string]bool,
	error,
) {
	var rows []result.Row
	ran := map[string]bool{}
	for _, s := range scenarios {
		measured, err := s.Run(ctx, env)
		rows = append(rows, measured...)
		switch {
		case errors.Is(err, scenario.ErrSkipped):
			env.Logf("%v", err)
			continue
		case err != nil:
			return rows, ran, err
		}
		ran[s.Name] = true
	}
	return rows, ran, nil
}

func show(cfg config, rows []result.Row, ran map[string]bool, stdout io.Writer) error {
	var about [][2]string
	for _, s := range cfg.scenarios {
		about = append(about, [2]string{s.Name, s.About})
	}
	sections := report.Sections(about, rows)
	for _, s := range sections {
		if err := report.Table(stdout, s); err != nil {
			return err
		}
	}
	err := cli.WriteFile(cfg.json, func(w io.Writer) error { return result.WriteJSON(w, rows) })
	if cfg.plots != "" {
		err = errors.Join(err, report.Plots(cfg.plots, sections))
	}
	if !cfg.check {
		return err
	}
	outcomes := target.Evaluate(rows)
	fmt.Fprintln(stdout)
	if e := target.Write(stdout, outcomes, ran); e != nil {
		return errors.Join(err, e)
	}
	if target.Failed(outcomes, ran, hasLimit(rows)) {
		return errors.Join(err, errMissed)
	}
	return err
}

func hasLimit(rows []result.Row) bool {
	return slices.ContainsFunc(rows, func(r result.Row) bool { return r.Subject == scenario.LimitName })
}

func (c config) fleet(ctx context.Context) (*fleet.Fleet, error) {
	if len(c.addrs) > 0 {
		return fleet.Attach(c.addrs)
	}
	n := c.Masters
	for _, s := range c.scenarios {
		n = max(n, s.Needs)
	}
	return fleet.Start(ctx, n)
}
