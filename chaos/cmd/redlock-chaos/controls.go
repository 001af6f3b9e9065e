package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

func controlsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var w where
	f := flagSet("controls", stderr)
	w.flags(f, "chaos-report-controls")
	jsonFile := f.String("json", "", "write the table here as JSON")
	table := f.String("table", "", "write the table to this `file`, in Markdown")
	runs := f.Int("runs", 0, "run each with so many seeds and say how many caught it, instead of until one does; "+
		"unbroken locks are not run")
	only := f.String("only", "", "only these, by name, comma-separated")
	parallel := f.Int("parallel", 1, "how many locks to try at once")
	if !parsed(f, args, stderr) {
		return exitUsage
	}
	cfg, err := w.config()
	if err == nil && *parallel < 1 {
		err = errors.New("-parallel is at least 1")
	}
	chosen := chooseControls(*only)
	if err == nil && len(chosen) == 0 {
		err = fmt.Errorf("no control named %q", *only)
	}
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos controls: %v\n", err)
		return exitUsage
	}
	release, err := claim(w.dir, stderr)
	if err != nil {
		return setupFailed(stderr, err)
	}
	defer release()
	fmt.Fprintf(stdout, "%-26s %-18s %-21s %-7s %5s %7s  %s\n", "broken lock", "scenario", "oracle", "caught", "seed",
		"after", "unbroken, same seed")
	results, err := tryControls(ctx, chosen, *parallel, func(c chaos.Control) (chaos.ControlResult, error) {
		cfg := cfg
		cfg.Dir = filepath.Join(w.dir, strings.ReplaceAll(c.Subject.Name(), ":", "-"))
		return runControl(ctx, c, cfg, *runs, args, stderr)
	}, stdout)
	if *jsonFile != "" {
		err = errors.Join(err, writeJSON(*jsonFile, results))
	}
	if *table != "" {
		err = errors.Join(err, writeText(*table, controlsTable(results)))
	}
	if err != nil {
		return setupFailed(stderr, err)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "redlock-chaos: interrupted")
		return exitUnknown
	}
	return controlsStatus(slices.DeleteFunc(results, func(r chaos.ControlResult) bool {
		return r.Caught && (!r.Failed() || mutant.Built() != "" || *runs > 0)
	}))
}

// tryControls tries several at once, and then those alone that need the heap of this process. It prints each result,
// and returns those that there are: one that can't be run does not keep the others from it.
func tryControls(ctx context.Context, all []chaos.Control, parallel int,
	try func(chaos.Control) (chaos.ControlResult, error), stdout io.Writer,
) ([]chaos.ControlResult, error) {
	results := make([]chaos.ControlResult, len(all))
	var mu sync.Mutex
	var failed error
	one := func(i int) error {
		result, err := try(all[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", all[i].Subject.Name(), err))
			fmt.Fprintf(stdout, "%-26s FAILED: %v\n", all[i].Subject.Name(), err)
		default:
			results[i] = result
			row(stdout, result)
		}
		return nil
	}
	var group errgroup.Group
	for _, alone := range []bool{false, true} {
		if alone {
			parallel = 1
		}
		group.SetLimit(parallel)
		for i, c := range all {
			if c.Alone() == alone {
				group.Go(func() error { return one(i) })
			}
		}
		_ = group.Wait()
	}
	return slices.DeleteFunc(results, func(r chaos.ControlResult) bool { return r.Subject == "" }), failed
}

// controlsStatus is the exit status for these failed controls. The status is "unknown" if every failed control had too
// little time.
func controlsStatus(failed []chaos.ControlResult) int {
	switch {
	case len(failed) == 0:
		return exitPass
	case slices.ContainsFunc(failed, func(r chaos.ControlResult) bool { return !r.Starved }):
		return exitViolation
	}
	return exitUnknown
}

// chooseControls returns those with these names, or all.
func chooseControls(names string) []chaos.Control {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
	return slices.DeleteFunc(chaos.Controls(), func(c chaos.Control) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, c.Subject.Name())
	})
}

// runControl runs a control. If the control needs a mutant, this command runs it in a build with the mutant.
func runControl(ctx context.Context, c chaos.Control, cfg chaos.Config, runs int, args []string,
	stderr io.Writer,
) (result chaos.ControlResult, err error) {
	switch {
	case runs > 0 && c.Mutant == mutant.Built():
		return c.Rate(ctx, cfg, runs)
	case c.Mutant == "":
		result, err = c.Catch(ctx, cfg)
	case mutant.Built() != "":
		return c.Catch(ctx, cfg)
	default:
		result, err = caughtElsewhere(ctx, c, cfg.Dir, args, stderr)
	}
	if err != nil || !result.Caught || runs > 0 {
		return result, err
	}
	return c.Compare(ctx, cfg, result)
}

// caughtElsewhere has this command look for the control in a build with its mutant.
func caughtElsewhere(ctx context.Context, c chaos.Control, dir string, args []string,
	stderr io.Writer,
) (result chaos.ControlResult, _ error) {
	m, err := mutant.Find(c.Mutant)
	if err != nil {
		return result, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return result, err
	}
	file := filepath.Join(dir, "control.json")
	args = slices.Concat([]string{"controls"}, args,
		[]string{"-only", c.Subject.Name(), "-dir", dir, "-json", file, "-table", ""})
	status, err := m.Run(ctx, mutant.Command, args, io.Discard, stderr)
	if err != nil || ctx.Err() != nil {
		return result, err
	}
	if status != exitPass && status != exitViolation && status != exitUnknown {
		return result, fmt.Errorf("%s: the build with the mutant ended with status %d", c.Subject.Name(), status)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return result, err
	}
	var all []chaos.ControlResult
	if err := json.Unmarshal(raw, &all); err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	if len(all) != 1 {
		return result, fmt.Errorf("%s: %d results, want one", file, len(all))
	}
	return all[0], nil
}

func row(w io.Writer, r chaos.ControlResult) {
	caught := "yes"
	if !r.Caught {
		caught = "NO"
	}
	fmt.Fprintf(w, "%-26s %-18s %-21s %-7s %5d %6.1fs  %s\n", r.Subject, r.Scenario, r.Oracle, caught, r.Seed,
		float64(r.TookMS)/1000, r.Unbroken)
	if r.CaughtRuns+r.StarvedRuns > 0 {
		fmt.Fprintf(w, "    caught in %d of %d runs; %d more had too little time\n", r.CaughtRuns, r.Runs,
			r.StarvedRuns)
	}
	if r.Evidence != "" {
		fmt.Fprintf(w, "    %s\n", r.Evidence)
	}
	if r.Starved {
		fmt.Fprintln(w, "    the machine gave it too little time")
	}
	for _, reason := range r.UnbrokenReasons {
		fmt.Fprintf(w, "    unbroken: %s\n", reason)
	}
}

// controlsTable has a line for each broken lock.
func controlsTable(results []chaos.ControlResult) string {
	var b strings.Builder
	b.WriteString("| broken lock | scenario | oracle | caught in | too little time | seconds a run |\n" +
		"| --- | --- | --- | ---: | ---: | ---: |\n")
	for _, r := range results {
		caught, runs := r.CaughtRuns, r.Runs
		if r.Caught && caught == 0 { // without -runs the last run is the one that caught it
			caught = 1
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d of %d | %d | %.1f |\n", r.Subject, r.Scenario, r.Oracle, caught, runs,
			r.StarvedRuns, float64(r.TookMS)/1000)
	}
	return b.String()
}

func writeJSON(name string, v any) error {
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeText(name, string(out)+"\n")
}

func writeText(name, text string) error {
	return os.WriteFile(name, []byte(text), 0o644)
}
