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
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/limit"
	"github.com/seed-624411e5/redlock/bench/internal/report"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/bench/internal/target"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	//nolint:gocritic // stop only restores the signals of a process that ends
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	if err := bench(ctx, cfg, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return exitOK
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
	cfg.subjects = subjects
	fmt.Fprintln(stdout, strings.Join(append(describe(ctx, cfg, masters), own.facts...), "\n"))

	env := cfg.env(masters, own, func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	})
	rows, ran, err := measure(ctx, cfg.scenarios, env)
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
	err := writeFile(cfg.json, func(w io.Writer) error { return result.WriteJSON(w, rows) })
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
	for _, r := range rows {
		if r.Subject == scenario.LimitName {
			return true
		}
	}
	return false
}

// writeFile does nothing without a path. It returns an error if the file could not be written completely, also if
// closing it fails.
func writeFile(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

func (c config) fleet(ctx context.Context) (*fleet.Fleet, error) {
	if len(c.addrs) > 0 {
		return fleet.Attach(c.addrs)
	}
	n := c.masters
	for _, s := range c.scenarios {
		n = max(n, s.Needs)
	}
	return fleet.Start(ctx, n)
}

func (c config) env(masters *fleet.Fleet, own hosts, logf func(string, ...any)) *scenario.Env {
	return &scenario.Env{
		Fleet: masters, Hosts: own.fleets, Subjects: c.subjects, Kinds: subject.Kinds(), Masters: c.masters,
		Workers:  c.workers,
		Duration: c.duration, Repeat: c.repeat, Bound: c.bound, Rate: c.rate,
		Contenders: c.contenders, ContendFor: c.contendFor, Hold: c.hold, Holds: c.holds,
		Limit: limit.Measure, Logf: logf,
	}
}
