package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/mutant"
)

func TestMutantsAreTriedAndWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, page := filepath.Join(dir, "t.json"), filepath.Join(dir, "page.md")
	if err := os.WriteFile(page,
		[]byte("above\n"+pageBegins+"old\n| `limiter-one-more` | old |\n| `half-quorum` | as it was |\n| `gone` | "+
			"old |\n"+pageEnds+"below\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := execute(t.Context(), t, "mutants", "-only", "retention-*,limiter/limiter-one-more", "-json",
		file, "-page", page)
	if status != exitPass || !strings.Contains(out, "3 of 3 mutants are caught, 0 have survived") {
		t.Fatalf("status %d: %s%s", status, out, stderr)
	}
	raw, err := os.ReadFile(file)
	must(t, err)
	var results []mutant.Result
	if err := json.Unmarshal(raw, &results); err != nil || len(results) != 3 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for _, r := range results {
		if r.Verdict != mutant.Caught || r.Seconds <= 0 || r.Breaks == "" || r.By == "" {
			t.Errorf("%+v", r)
		}
	}
	written, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(written), "above\n") || !strings.HasSuffix(string(written), "below\n") ||
		strings.Contains(string(written), "| old |") || strings.Contains(string(written), "\nold\n") ||
		!strings.Contains(string(written), "## engine\n") ||
		strings.Count(string(written), "\n| `half-quorum` | as it was |\n") != 1 ||
		!strings.Contains(string(written), "| `limiter-one-more` | one operation more than the limit is under way | "+
			"internal/limiter/Test") {
		t.Errorf("%v: %s", err, written)
	}
}

func TestOnlyMutantsThatAreCaughtOrEquivalentAreAPass(t *testing.T) {
	for status, verdicts := range map[int][]mutant.Verdict{
		exitPass:      {mutant.Caught, mutant.Equivalent},
		exitViolation: {mutant.Caught, mutant.Unknown, mutant.Survived},
		exitUnknown:   {mutant.Caught, mutant.Unknown},
	} {
		var out strings.Builder
		results := make([]mutant.Result, len(verdicts))
		for i, v := range verdicts {
			results[i].Verdict = v
		}
		if got := conclude(results, &out); got != status {
			t.Errorf("%v: status %d, want %d: %s", verdicts, got, status, out.String())
		}
	}
	var out strings.Builder
	showMutant(&out, mutant.Result{Name: "m", Verdict: mutant.Survived, Breaks: "the rule", Note: "TestX passes"})
	if !strings.Contains(out.String(), "SURVIVED") || !strings.Contains(out.String(), "it breaks: the rule") ||
		!strings.Contains(out.String(), "TestX passes") {
		t.Errorf("a survivor is shown as %s", out.String())
	}
	if got := rowOf(mutant.Result{Name: "m", Verdict: mutant.Survived}); !strings.Contains(got, "**survived**") {
		t.Errorf("and written as %s", got)
	}
}

func TestUnknownMutantsAreNamed(t *testing.T) {
	for args, says := range map[string]string{
		"-only nonsense": `no mutant is called "nonsense"`, "-only retention-*,none": `"none"`,
		"-only [":                          "syntax error",
		"-sample -only retention-no-bound": "sample", "-workers 0": "-workers",
		"-only retention-no-bound x": "unexpected",
	} {
		if status, out, stderr := execute(t.Context(), t,
			append([]string{"mutants"}, strings.Fields(args)...)...); status != exitUsage ||
			!strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s%s", args, status, out, stderr)
		}
	}
}

func TestMutantsNeedACheckout(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, stderr := execute(t.Context(), t, "mutants", "-only", "retention-no-bound"); status != exitSetup ||
		!strings.Contains(stderr, "lies in no checkout") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
