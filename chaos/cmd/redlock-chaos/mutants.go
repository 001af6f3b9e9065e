package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

// mutantsCommand tries every mutant of the engine on the test or scenario that has to notice it.
func mutantsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flagSet("mutants", stderr)
	only := f.String("only", "", "only these: `names` or patterns as release-* or scripts/*, comma-separated")
	sample := f.Bool("sample", false, "only those that the tests of every run are tried on")
	jsonFile := f.String("json", "", "write the table to this `file` as JSON")
	page := f.String("page", "", "put what was found into this `file`'s tables, between its two marks, as "+
		"docs/evidence/mutants.md has it")
	workers := f.Int("workers", min(2, runtime.GOMAXPROCS(0)), "how many to try at the same time")
	if !parsed(f, args, stderr) {
		return exitUsage
	}
	chosen, err := choose(*only, *sample)
	if err == nil && *workers < 1 {
		err = fmt.Errorf("-workers is %d, and must be at least 1", *workers)
	}
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos mutants: %v\n", err)
		return exitUsage
	}
	results, err := tryMutants(ctx, chosen, *workers, stdout)
	if err != nil {
		return setupFailed(stderr, err)
	}
	if *jsonFile != "" {
		err = writeJSON(*jsonFile, results)
	}
	if *page != "" && ctx.Err() == nil { // what was not tried any more is unknown, and the page may know it
		err = errors.Join(err, writePage(*page, results))
	}
	if err != nil {
		return setupFailed(stderr, err)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "redlock-chaos: interrupted")
		return exitUnknown
	}
	return conclude(results, stdout)
}

// choose returns the mutants that the patterns select. Every pattern has to match at least one.
func choose(only string, sample bool) ([]mutant.Mutant, error) {
	patterns := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	fits := make([]bool, len(patterns))
	var chosen []mutant.Mutant
	for _, m := range mutant.All() {
		wanted := len(patterns) == 0
		for i, pattern := range patterns {
			byName, err := path.Match(pattern, m.Name)
			if err != nil {
				return nil, fmt.Errorf("-only: %q: %w", pattern, err)
			}
			byGroup, _ := path.Match(pattern, m.Group()+"/"+m.Name) // it is a pattern
			if byName || byGroup {
				wanted, fits[i] = true, true
			}
		}
		if wanted && (m.Sample || !sample) {
			chosen = append(chosen, m)
		}
	}
	if i := slices.Index(fits, false); i >= 0 {
		return nil, fmt.Errorf("no mutant is called %q", patterns[i])
	}
	if len(chosen) == 0 {
		return nil, errors.New("no mutant of the sample is among them")
	}
	return chosen, nil
}

// tryMutants tries each, some at the same time, and shows them as they come; the results are in the order of the list.
func tryMutants(ctx context.Context, chosen []mutant.Mutant, workers int, stdout io.Writer) ([]mutant.Result, error) {
	if _, err := mutant.Root(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redlock-mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a file that is left in the temporary directory does no harm
	checker := &mutant.Checker{
		Dir: dir,
		Chaos: func(ctx context.Context, m mutant.Mutant, c mutant.Chaos) (string, error) {
			return tryOnMasters(ctx, m, c, filepath.Join(dir, m.Name))
		},
	}
	results := make([]mutant.Result, len(chosen))
	var all errgroup.Group
	all.SetLimit(workers)
	var shown sync.Mutex
	for i := range chosen {
		all.Go(func() error {
			results[i] = checker.Check(ctx, chosen[i])
			shown.Lock()
			defer shown.Unlock()
			showMutant(stdout, results[i])
			return nil
		})
	}
	return results, all.Wait()
}

// tryOnMasters runs the unchanged library. Then it runs the mutant in the scenario that has to show
// it, until it is caught.
func tryOnMasters(ctx context.Context, m mutant.Mutant, wants mutant.Chaos, dir string) (evidence string, _ error) {
	all := chaos.Controls()
	i := slices.IndexFunc(all, func(c chaos.Control) bool { return c.Mutant == m.Name && c.Scenario == wants.Scenario })
	if i < 0 {
		return "", fmt.Errorf("no control is called %s", m.Name)
	}
	var w where
	f := flagSet("mutants", io.Discard)
	w.flags(f, dir)
	if err := f.Parse(nil); err != nil {
		return "", err
	}
	cfg, err := w.config()
	if err != nil {
		return "", err
	}
	cfg.Dir = filepath.Join(dir, "unbroken")
	before, err := all[i].Compare(ctx, cfg, chaos.ControlResult{Seed: 1})
	if err != nil {
		return "", err
	}
	if before.Unbroken != report.Pass {
		return "", fmt.Errorf("without the mutant: %s, %s", before.Unbroken, strings.Join(before.UnbrokenReasons, "; "))
	}
	result, err := caughtElsewhere(ctx, all[i], dir, nil, io.Discard)
	return result.Evidence, err
}

func showMutant(w io.Writer, r mutant.Result) {
	fmt.Fprintf(w, "%-10s %6.1fs  %-34s %s\n", strings.ToUpper(string(r.Verdict)), r.Seconds, r.Name, r.By)
	if r.Failed() {
		fmt.Fprintf(w, "    it breaks: %s\n    %s\n", r.Breaks,
			strings.ReplaceAll(strings.TrimSpace(r.Note), "\n", "\n    "))
	}
}

// conclude counts, and returns the exit status: 0 if nothing has survived and nothing is unknown.
func conclude(results []mutant.Result, stdout io.Writer) int {
	count := make(map[mutant.Verdict]int)
	var took time.Duration
	for _, r := range results {
		count[r.Verdict]++
		took += time.Duration(r.Seconds * float64(time.Second))
	}
	fmt.Fprintf(stdout, "%d of %d mutants are caught, %d have survived, %d are unknown; %d changes are equivalent. "+
		"%v one by one\n",
		count[mutant.Caught], len(results)-count[mutant.Equivalent], count[mutant.Survived], count[mutant.Unknown],
		count[mutant.Equivalent], took.Round(time.Second))
	switch {
	case count[mutant.Survived] > 0:
		return exitViolation
	case count[mutant.Unknown] > 0:
		return exitUnknown
	default:
		return exitPass
	}
}

// The marks of a page, between which the table is.
const (
	pageBegins = "<!-- the table: redlock-chaos mutants -page docs/evidence/mutants.md -->\n"
	pageEnds   = "<!-- its end -->\n"
)

// writePage puts the results into a page's tables, one for each group. Mutants that were not tried keep the rows that
// they have there.
func writePage(file string, results []mutant.Result) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(raw), pageBegins)
	tables, behind, ends := strings.Cut(rest, pageEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no %s and behind it %s", file, strings.TrimSpace(pageBegins),
			strings.TrimSpace(pageEnds))
	}
	rows := rowsOf(tables)
	for _, r := range results {
		rows[r.Name] = rowOf(r)
	}
	page := before + pageBegins + tablesOf(rows) + pageEnds + behind
	return os.WriteFile(file, []byte(page), 0o644) //nolint:gosec // a page to be read
}

// rowsOf finds the rows of a page's tables, by the names of their mutants.
func rowsOf(tables string) map[string]string {
	rows := make(map[string]string)
	for row := range strings.Lines(tables) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(row, "| `"), "` | "); ok {
			rows[name] = row
		}
	}
	return rows
}

// tablesOf has the rows of mutants that there are, by their groups, in the order of their list.
func tablesOf(rows map[string]string) string {
	var groups []string
	members := make(map[string]string)
	for _, m := range mutant.All() {
		if row := rows[m.Name]; row != "" {
			if members[m.Group()] == "" {
				groups = append(groups, m.Group())
			}
			members[m.Group()] += row
		}
	}
	var out strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&out, "\n## %s\n\n| mutant | what it breaks | caught by | seconds |\n| --- | --- | --- | --- |\n%s",
			group, members[group])
	}
	return out.String() + "\n"
}

func rowOf(r mutant.Result) string {
	return "| `" + r.Name + "` | " + strings.Join([]string{cell(r.Breaks), caughtBy(r), seconds(r)}, " | ") + " |\n"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func caughtBy(r mutant.Result) string {
	switch r.Verdict {
	case mutant.Caught:
		return cell(r.By)
	case mutant.Equivalent:
		return "equivalent: " + cell(r.Note)
	default:
		return "**" + string(r.Verdict) + "**"
	}
}

func seconds(r mutant.Result) string {
	if r.Verdict == mutant.Equivalent {
		return ""
	}
	return fmt.Sprintf("%.1f", r.Seconds)
}
