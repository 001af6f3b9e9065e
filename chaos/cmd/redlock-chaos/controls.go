package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

func controlsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var w where
	f := flagSet("controls", stderr)
	w.flags(f, "chaos-report-controls")
	jsonFile := f.String("json", "", "write the table here as JSON")
	runs := f.Int("runs", 0, "run each with so many seeds and say how many caught it, instead of until one does; "+
		"unbroken locks are not run")
	only := f.String("only", "", "only these, by name, comma-separated")
	if status, ok := parsed(f, args, stderr); !ok {
		return status
	}
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	var results []chaos.ControlResult
	status := exitPass
	fmt.Fprintf(stdout, "%-24s %-18s %-21s %-7s %5s %7s  %s\n", "broken lock", "scenario", "oracle", "caught", "seed",
		"after", "unbroken, same seed")
	for _, c := range chaos.Controls() {
		if len(wanted) > 0 && !slices.Contains(wanted, c.Subject.Name()) {
			continue
		}
		cfg, err := w.config()
		if err != nil {
			fmt.Fprintf(stderr, "redlock-chaos controls: %v\n", err)
			return exitUsage
		}
		cfg.Dir = filepath.Join(w.dir, strings.ReplaceAll(c.Subject.Name(), ":", "-"))
		result, err := runControl(ctx, c, cfg, *runs, args, stderr)
		if err != nil {
			return setupFailed(stderr, err)
		}
		if ctx.Err() != nil {
			fmt.Fprintln(stderr, "redlock-chaos: interrupted")
			return exitUnknown
		}
		results = append(results, result)
		if !result.Caught || result.Failed() && mutant.Built() == "" && *runs == 0 {
			status = exitViolation
		}
		row(stdout, result)
	}
	if len(results) == 0 {
		fmt.Fprintf(stderr, "redlock-chaos: no control named %q\n", *only)
		return exitUsage
	}
	if *jsonFile != "" {
		if err := writeJSON(*jsonFile, results); err != nil {
			return setupFailed(stderr, err)
		}
	}
	return status
}

// runControl runs a control. If the control needs a mutant, this command runs it in a build with
// the mutant.
func runControl(ctx context.Context, c chaos.Control, cfg chaos.Config, runs int, args []string,
	stderr io.Writer,
) (chaos.ControlResult, error) {
	switch {
	case runs > 0 && c.Mutant == mutant.Built():
		return c.Rate(ctx, cfg, runs)
	case c.Mutant == "":
		return c.Run(ctx, cfg)
	case mutant.Built() != "":
		return c.Catch(ctx, cfg)
	}
	result, err := caughtElsewhere(ctx, c, cfg.Dir, args, stderr)
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
	args = slices.Concat([]string{"controls"}, args, []string{"-only", c.Subject.Name(), "-dir", dir, "-json", file})
	status, err := m.Run(ctx, mutant.Command, args, io.Discard, stderr)
	if err != nil || ctx.Err() != nil {
		return result, err
	}
	if status != exitPass && status != exitViolation {
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
	fmt.Fprintf(w, "%-24s %-18s %-21s %-7s %5d %6.1fs  %s\n", r.Subject, r.Scenario, r.Oracle, caught, r.Seed,
		float64(r.TookMS)/1000, r.Unbroken)
	if r.CaughtRuns+r.StarvedRuns > 0 {
		fmt.Fprintf(w, "    caught in %d of %d runs; %d of the others had too little time\n", r.CaughtRuns, r.Runs,
			r.StarvedRuns)
	}
	if r.Evidence != "" {
		fmt.Fprintf(w, "    %s\n", r.Evidence)
	}
	for _, reason := range r.UnbrokenReasons {
		fmt.Fprintf(w, "    unbroken: %s\n", reason)
	}
}

func writeJSON(name string, v any) error {
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(out, '\n'), 0o644) //nolint:gosec // where the user wants it
}
