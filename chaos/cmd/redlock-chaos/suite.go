package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// suite are several runs of one call: scenarios times seeds.
type suite struct {
	scenarios []string
	seeds     []uint64
	markdown  string
	failFast  bool
}

// newSuite reads -scenario and -seeds. It fails on a name or a range that there is not.
func newSuite(scenarios, seeds string, seed uint64) (*suite, error) {
	s := &suite{seeds: []uint64{seed}}
	for name := range strings.SplitSeq(scenarios, ",") {
		if _, err := plan.FindScenario(name); err != nil {
			return nil, err
		}
		s.scenarios = append(s.scenarios, name)
	}
	if seeds == "" {
		return s, nil
	}
	from, to, isRange := strings.Cut(seeds, "..")
	first, err := strconv.ParseUint(from, 10, 64)
	last := first
	if err == nil && isRange {
		last, err = strconv.ParseUint(to, 10, 64)
	}
	if err != nil || first == 0 || last < first || last-first >= 100_000 {
		return nil, fmt.Errorf("-seeds is %q, want a number above 0 or a range such as 1..20", seeds)
	}
	s.seeds = nil
	for n := first; n <= last; n++ {
		s.seeds = append(s.seeds, n)
	}
	return s, nil
}

// run makes the runs. Each run has its own directory in cfg.Dir, and one junit.xml lists all runs, also those that were
// not made. The status is that of the worst run: violation, then could not be made, then unknown, then pass.
func (s *suite) run(ctx context.Context, cfg chaos.Config, replay func(scenario string, seed uint64) string,
	stdout, stderr io.Writer,
) int {
	var runs []report.SuiteRun
	worst, junit := exitPass, cfg.JUnit
	dir := cfg.Dir
	if junit == "" {
		junit = filepath.Join(dir, "junit.xml")
	}
	for _, scenario := range s.scenarios {
		for _, seed := range s.seeds {
			one := report.SuiteRun{Scenario: scenario, Seed: seed}
			switch {
			case ctx.Err() != nil:
				one.Skipped = "not run: " + context.Cause(ctx).Error()
				worst = worse(worst, exitUnknown)
			case s.failFast && worst == exitViolation:
				one.Skipped = "not run: there is a violation, and -failfast was given"
			default:
				cfg.Scenario, cfg.Seed, cfg.Replay = scenario, seed, replay(scenario, seed)
				cfg.Dir = filepath.Join(dir, fmt.Sprintf("%s-%d", scenario, seed))
				cfg.HTML, cfg.JSON, cfg.JUnit = "", "", ""
				worst = worse(worst, s.runOne(ctx, cfg, &one, stdout, stderr))
			}
			if one.Skipped != "" {
				fmt.Fprintf(stdout, "SKIPPED: %s, seed %d: %s\n", scenario, seed, one.Skipped)
			}
			runs = append(runs, one)
		}
	}
	if err := s.write(junit, runs); err != nil {
		worst = worse(worst, setupFailed(stderr, err))
	}
	fmt.Fprintf(stdout, "%d runs: %s\n", len(runs), junit)
	if shown := len(runs) - skipped(runs); shown == 0 && worst == exitPass {
		fmt.Fprintln(stderr, "redlock-chaos: every scenario was skipped, so nothing was shown")
		worst = exitUnknown
	}
	return worst
}

// runOne makes one of the runs and says how it went. What one run can't write keeps nothing from the others.
func (s *suite) runOne(ctx context.Context, cfg chaos.Config, one *report.SuiteRun, stdout, stderr io.Writer) int {
	if cfg.Plan != nil {
		own := *cfg.Plan
		own.Seed, cfg.Plan = cfg.Seed, &own
	}
	rep, err := chaos.Run(ctx, cfg)
	if rep == nil && errors.Is(err, workload.ErrUnsupported) {
		one.Skipped = err.Error()
		return exitPass
	}
	status := exitPass
	if err != nil {
		one.Failed, status = err.Error(), setupFailed(stderr, err)
	}
	if one.Report = rep; rep != nil {
		summarize(stdout, rep)
		status = worse(status, exitOf(rep.Verdict))
	}
	return status
}

// worse returns the status that matters more.
func worse(a, b int) int {
	order := []int{exitPass, exitUnknown, exitSetup, exitViolation}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

func skipped(runs []report.SuiteRun) int {
	n := 0
	for i := range runs {
		if runs[i].Skipped != "" {
			n++
		}
	}
	return n
}

func (s *suite) write(junit string, runs []report.SuiteRun) error {
	if err := report.WriteSuite(junit, chaos.Oracles(), runs); err != nil || s.markdown == "" {
		return err
	}
	// Appended, as the files are that build servers give for this.
	f, err := os.OpenFile(s.markdown, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(report.Markdown(f, runs), f.Close())
}
