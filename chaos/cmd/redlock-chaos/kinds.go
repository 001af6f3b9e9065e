package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/program"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// kindsCommand runs correct locks that lack something in every scenario.
func kindsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var w where
	s := suite{repeat: 1}
	f := flagSet("kinds", stderr)
	w.flags(f, "chaos-report-kinds")
	f.IntVar(&s.parallel, "parallel", 1, "make so many runs at once")
	scenarios := f.String("scenario", "all", "names of scenarios, with commas, or all")
	duration := f.Duration("duration", 8*time.Second, "how long each run lasts")
	exec := f.String("exec", "", "a correct lock in another language, as for run: one more column of the table")
	table := f.String("table", "", "write the table to this `file`, in Markdown")
	if !parsed(f, args, stderr) {
		return exitUsage
	}
	cfg, err := w.config()
	if err == nil {
		err = s.draw(*scenarios, "", w.seed)
	}
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos kinds: %v\n", err)
		return exitUsage
	}
	release, err := claim(w.dir, stderr)
	if err != nil {
		return setupFailed(stderr, err)
	}
	defer release()
	kinds := chaos.Kinds()
	if words := strings.Fields(*exec); len(words) > 0 {
		kinds = append(kinds, chaos.Kind{Lacks: "Go", Subject: program.Subject(words, false)})
	}
	cfg.Duration = *duration
	m := &making{suite: &s, stdout: stdout, stderr: stderr}
	runs := m.all(ctx, s.ofKinds(cfg, kinds))
	text := kindsTable(s.scenarios, kinds, runs)
	fmt.Fprint(stdout, text)
	if *table != "" {
		err = writeText(*table, text)
	}
	if err != nil {
		return setupFailed(stderr, err)
	}
	return kindsStatus(ctx, runs)
}

// kindsStatus is the worst of the runs that were possible here.
func kindsStatus(ctx context.Context, runs []report.SuiteRun) int {
	worst := exitPass
	if ctx.Err() != nil {
		worst = exitUnknown
	}
	for i := range runs {
		switch r := &runs[i]; {
		case r.Failed != "":
			worst = worse(worst, exitSetup)
		case r.Report != nil && !impossible(r.Report):
			worst = worse(worst, exitOf(r.Report.Verdict))
		}
	}
	return worst
}

// impossible tells whether the backend can't do any fault that the scenario is about.
func impossible(r *chaos.Report) bool {
	if r.Plan == nil || len(r.Plan.About()) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Plan.About(), func(name string) bool { return r.Unavailable[name] == "" })
}

func allScenarios() []string {
	var names []string
	for _, sc := range plan.Scenarios() {
		names = append(names, sc.Name)
	}
	return names
}

// ofKinds returns the configuration of each run: all kinds in the first scenario, then in the next.
func (s *suite) ofKinds(cfg chaos.Config, kinds []chaos.Kind) []chaos.Config {
	var all []chaos.Config
	for _, scenario := range s.scenarios {
		for i, k := range kinds {
			one := cfg
			one.Scenario, one.Subject = scenario, k.Subject
			one.Dir = filepath.Join(cfg.Dir, fmt.Sprintf("%s-%d", scenario, i+1))
			one.Masters = cmp.Or(k.Masters, cfg.Masters)
			all = append(all, one)
		}
	}
	return all
}

// kindsTable has a row for each scenario and a column for each kind of lock.
func kindsTable(scenarios []string, kinds []chaos.Kind, runs []report.SuiteRun) string {
	var b strings.Builder
	b.WriteString("| scenario |")
	for _, k := range kinds {
		fmt.Fprintf(&b, " without %s |", k.Lacks)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(kinds)) + "\n")
	for i, scenario := range scenarios {
		fmt.Fprintf(&b, "| %s |", scenario)
		for j := range kinds {
			fmt.Fprintf(&b, " %s |", verdictOf(&runs[i*len(kinds)+j]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func verdictOf(r *report.SuiteRun) string {
	switch {
	case r.Report != nil && impossible(r.Report):
		return "impossible here"
	case r.Report != nil:
		return string(r.Report.Verdict)
	case r.Skipped != "":
		return "skipped"
	default:
		return "failed"
	}
}
