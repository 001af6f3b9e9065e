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
)

func controlsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var w where
	f := flagSet("controls", stderr)
	w.flags(f, "chaos-report-controls")
	jsonFile := f.String("json", "", "write the table here as JSON")
	only := f.String("only", "", "only these, by name, comma-separated")
	if status, ok := parsed(f, args, stderr); !ok {
		return status
	}
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	var results []chaos.ControlResult
	status := exitPass
	fmt.Fprintf(stdout, "%-24s %-18s %-21s %-7s %5s %7s  %s\n", "broken lock", "scenario", "oracle", "caught", "seed", "after", "unbroken, same seed")
	for _, c := range chaos.Controls() {
		if len(wanted) > 0 && !slices.Contains(wanted, c.Subject.Name()) {
			continue
		}
		cfg := w.config()
		cfg.Dir = filepath.Join(w.dir, strings.ReplaceAll(c.Subject.Name(), ":", "-"))
		result, err := c.Run(ctx, cfg)
		if err != nil {
			return setupFailed(stderr, err)
		}
		if ctx.Err() != nil {
			fmt.Fprintln(stderr, "redlock-chaos: interrupted")
			return exitUnknown
		}
		results = append(results, result)
		if result.Failed() {
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

func row(w io.Writer, r chaos.ControlResult) {
	caught := "yes"
	if !r.Caught {
		caught = "NO"
	}
	fmt.Fprintf(w, "%-24s %-18s %-21s %-7s %5d %6.1fs  %s\n", r.Subject, r.Scenario, r.Oracle, caught, r.Seed,
		float64(r.TookMS)/1000, r.Unbroken)
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
	return os.WriteFile(name, append(out, '\n'), 0o644)
}
