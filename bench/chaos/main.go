// Command chaos runs this library and its rivals under the same faults, and compares the broken promises. Each plan
// breaks networks, servers, clocks and clients. The table shows the findings of the chaos harness's oracles side by
// side.
//
//	go run ./bench/chaos                                       ten scenarios, four subjects; about ten minutes
//	go run ./bench/chaos -seed 7 -seeds 3                      three plans of each, 7, 8 and 9
//	go run ./bench/chaos -scenarios calm,drift -duration 20s   some of it, longer
//	go run ./bench/chaos -subjects redlock,redsync-tuned       others than the usual four
//	go run ./bench/chaos -json out.json -reports out           for machines, and each run's page for people
//
// Every run starts five redis-server processes. Runs follow one another; no two run at the same time. A scenario, a
// seed and a duration determine the plan: every subject gets the same faults on the same masters at the same times. The
// subjects' goroutines are not repeatable, so counts differ from run to run. Whether a subject breaks a promise hardly
// differs.
//
// The exit status is 0 if every run was made, whatever the oracles found. It is 1 if a run could not be made, and 2 if
// the flags are invalid.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/chaos"
)

func main() {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	cli.Main(run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if err != nil {
		return cli.Status(stderr, "chaos", err, cli.Usage)
	}
	return cli.Status(stderr, "chaos", show(ctx, cfg, stdout, stderr), cli.Failed)
}

// show runs everything and prints each scenario when it is done. It also prints the scenarios before a failure.
func show(ctx context.Context, cfg config, stdout, stderr io.Writer) (err error) {
	facts := describe(ctx)
	fmt.Fprintf(stdout, "%s\n%s\n", cfg.command, strings.Join(facts, "\n"))
	for _, s := range cfg.subjects {
		fmt.Fprintf(stdout, "%-17s %s\n", s.Name(), s.Text)
	}
	if cfg.reports == "" {
		dir, e := os.MkdirTemp("", "redlock-compare-")
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		cfg.reports = dir
	}
	c := comparison{config: cfg, run: chaos.Run, logf: cli.Logf(stderr)}
	var sections []section
	for _, scenario := range cfg.scenarios {
		s, failure := c.scenario(ctx, scenario)
		sections = append(sections, s)
		if err = errors.Join(failure, s.write(stdout)); err != nil {
			break
		}
	}
	return errors.Join(err, writeJSON(cfg.json, facts, sections))
}
