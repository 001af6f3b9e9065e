package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// suite are several runs of one call: scenarios times seeds, each so many times.
type suite struct {
	scenarios []string
	seeds     []uint64
	repeat    int
	// parallel is how many runs are made at once.
	parallel int
	// shrink is how many runs may be made to make the plan of a violation smaller.
	shrink   int
	markdown string
	failFast bool
}

// flags are the flags of several runs.
func (s *suite) flags(f *flag.FlagSet) {
	f.IntVar(&s.repeat, "repeat", 1, "make each run so many times: the same seed has the same faults, and another "+
		"interleaving")
	f.IntVar(&s.parallel, "parallel", 1, "make so many runs at once; a run that the machine then gave too little time "+
		"is made again, alone")
	f.IntVar(&s.shrink, "shrink", 0, "after a violation make up to so many further runs, and leave out steps of the "+
		"plan as long as the lock is convicted; the directory smaller of the run's has the smallest plan")
	f.BoolVar(&s.failFast, "failfast", false, "with several runs: stop at the first violation")
	f.StringVar(&s.markdown, "markdown", "", "append a table of the runs to this file, such as $GITHUB_STEP_SUMMARY")
}

// draw reads -scenario and -seeds. It fails on a name or a range that there is not.
func (s *suite) draw(scenarios, seeds string, seed uint64) error {
	if s.repeat < 1 || s.parallel < 1 || s.shrink < 0 {
		return errors.New("-repeat and -parallel are at least 1, and -shrink is at least 0")
	}
	if s.scenarios = strings.Split(scenarios, ","); scenarios == "all" {
		s.scenarios = allScenarios()
	}
	for _, name := range s.scenarios {
		if _, err := plan.FindScenario(name); err != nil {
			return err
		}
	}
	if seeds == "" {
		s.seeds = []uint64{seed}
		return nil
	}
	from, to, isRange := strings.Cut(seeds, "..")
	first, err := strconv.ParseUint(from, 10, 64)
	last := first
	if err == nil && isRange {
		last, err = strconv.ParseUint(to, 10, 64)
	}
	if err != nil || first == 0 || last < first || last-first >= 100_000 {
		return fmt.Errorf("-seeds is %q, want a number above 0 or a range such as 1..20", seeds)
	}
	for n := first; n <= last; n++ {
		s.seeds = append(s.seeds, n)
	}
	return nil
}

// configs returns the configuration of each run. Each run has its own directory in cfg.Dir.
func (s *suite) configs(cfg chaos.Config, replay func(scenario string, seed uint64) string) []chaos.Config {
	var all []chaos.Config
	for _, scenario := range s.scenarios {
		for _, seed := range s.seeds {
			for n := range s.repeat {
				one := cfg
				one.Scenario, one.Seed, one.Replay = scenario, seed, replay(scenario, seed)
				one.Dir = filepath.Join(cfg.Dir, fmt.Sprintf("%s-%d", scenario, seed))
				if s.repeat > 1 {
					one.Dir += fmt.Sprintf("-%d", n+1)
				}
				one.HTML, one.JSON, one.JUnit = "", "", ""
				if cfg.Plan != nil {
					own := *cfg.Plan
					own.Seed, one.Plan = seed, &own
				}
				all = append(all, one)
			}
		}
	}
	return all
}

// run makes the runs. One junit.xml in cfg.Dir lists all runs, also those that were not made. It returns the worst
// status of all runs: violation, then a failed set-up, then unknown, then pass.
func (s *suite) run(ctx context.Context, cfg chaos.Config, replay func(scenario string, seed uint64) string,
	stdout, stderr io.Writer,
) int {
	junit := cmp.Or(cfg.JUnit, filepath.Join(cfg.Dir, "junit.xml"))
	m := &making{suite: s, stdout: stdout, stderr: stderr}
	runs := m.all(ctx, s.configs(cfg, replay))
	if err := s.write(junit, runs); err != nil {
		m.worst = worse(m.worst, setupFailed(stderr, err))
	}
	fmt.Fprintf(stdout, "%d runs: %s: %s\n", len(runs), tally(runs), junit)
	if shown := len(runs) - skipped(runs); shown == 0 && m.worst == exitPass {
		fmt.Fprintln(stderr, "redlock-chaos: every scenario was skipped, so nothing was shown")
		return exitUnknown
	}
	return m.worst
}

// making makes the runs of a suite.
type making struct {
	*suite
	mu             sync.Mutex // guards the rest
	worst          int
	stdout, stderr io.Writer
}

// all makes the runs, several at once, and then those that are to be made alone.
func (m *making) all(ctx context.Context, configs []chaos.Config) []report.SuiteRun {
	runs := make([]report.SuiteRun, len(configs))
	again := make([]bool, len(configs))
	var group errgroup.Group
	group.SetLimit(m.parallel)
	for i := range configs {
		group.Go(func() error {
			runs[i], again[i] = m.one(ctx, configs[i], m.parallel > 1)
			return nil
		})
	}
	_ = group.Wait()
	for i, cfg := range configs {
		if again[i] {
			if runs[i].Report.Unjudged() {
				cfg.Duration *= 2
			}
			runs[i], _ = m.one(ctx, cfg, false)
		}
	}
	return runs
}

// one makes one of the runs and prints its result. If it shared the machine with others, and nothing was found because
// it had too little time, it only asks for another run.
func (m *making) one(ctx context.Context, cfg chaos.Config, shared bool) (run report.SuiteRun, again bool) {
	run = report.SuiteRun{Scenario: cfg.Scenario, Seed: cfg.Seed}
	var out, errs bytes.Buffer
	status := exitPass
	switch m.mu.Lock(); {
	case ctx.Err() != nil:
		run.Skipped, status = "not run: "+context.Cause(ctx).Error(), exitUnknown
	case m.failFast && m.worst == exitViolation:
		run.Skipped = "not run: there is a violation, and -failfast was given"
	default:
		m.mu.Unlock()
		status = m.make(ctx, cfg, &run, &out, &errs)
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	if rep := run.Report; shared && rep != nil && rep.Verdict == report.Unknown &&
		(rep.Starved || rep.Unjudged() || rep.Crowded) {
		why := "too few attempts could be judged"
		switch {
		case rep.Crowded:
			why = "other runs had the same heap"
		case rep.Starved:
			why = "the machine gave the run too little time beside others"
		}
		fmt.Fprintf(m.stdout, "AGAIN: %s, seed %d: %s\n", run.Scenario, run.Seed, why)
		return run, true
	}
	if run.Skipped != "" {
		fmt.Fprintf(&out, "SKIPPED: %s, seed %d: %s\n", run.Scenario, run.Seed, run.Skipped)
	}
	m.worst = worse(m.worst, status)
	_, _ = m.stdout.Write(out.Bytes())
	_, _ = m.stderr.Write(errs.Bytes())
	return run, false
}

func (m *making) make(ctx context.Context, cfg chaos.Config, run *report.SuiteRun, stdout, stderr io.Writer) int {
	rep, err := chaos.Run(ctx, cfg)
	if rep == nil && errors.Is(err, workload.ErrUnsupported) {
		run.Skipped = lacks(err)
		return exitPass
	}
	status := exitPass
	if err != nil {
		run.Failed, status = err.Error(), setupFailed(stderr, err)
	}
	if run.Report = rep; rep != nil {
		summarize(stdout, rep)
		status = worse(status, exitOf(rep.Verdict))
		m.shrinkPlan(ctx, cfg, rep, stdout, stderr)
	}
	return status
}

// shrinkPlan looks for a smaller plan after a violation. A search that fails takes nothing from the run's result.
func (s *suite) shrinkPlan(ctx context.Context, cfg chaos.Config, rep *chaos.Report, stdout, stderr io.Writer) {
	if s.shrink == 0 || rep.Verdict != report.Violation {
		return
	}
	cfg.Progress, cfg.Log = nil, nil
	smaller, err := chaos.Shrink(ctx, cfg, rep, s.shrink)
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos: looking for a smaller plan: %v\n", err)
	}
	if smaller == rep {
		fmt.Fprintf(stdout, "  no smaller plan was convicted in %d runs\n", s.shrink)
		return
	}
	fmt.Fprintf(stdout, "  convicted with %d of %d steps in %v too: %s\n", len(smaller.Plan.Steps), len(rep.Plan.Steps),
		time.Duration(smaller.Plan.Duration), smaller.Replay)
}

// worse returns the status that matters more.
func worse(a, b int) int {
	order := []int{exitPass, exitUnknown, exitSetup, exitViolation}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// lacks returns the reason in an error that matches workload.ErrUnsupported.
func lacks(err error) string {
	_, reason, _ := strings.Cut(err.Error(), workload.ErrUnsupported.Error()+": ")
	return cmp.Or(reason, err.Error())
}

// tally counts the runs by status, the worst first, and names those that neither passed nor were skipped.
func tally(runs []report.SuiteRun) string {
	named := make(map[report.Verdict][]string)
	for i := range runs {
		r := &runs[i]
		named[r.Status()] = append(named[r.Status()], fmt.Sprintf("%s %d", r.Scenario, r.Seed))
	}
	var parts []string
	for _, status := range []report.Verdict{
		report.Violation, report.Failed, report.Unknown, report.Pass, report.Skipped,
	} {
		if names := named[status]; len(names) > 0 {
			part := fmt.Sprintf("%d %s", len(names), status)
			if status != report.Pass && status != report.Skipped {
				part += " (" + strings.Join(names, ", ") + ")"
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
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
