package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// TestCorrectLocksThatLackSomethingAreSkippedOrPass has a scenario of renewed holds, which one of the kinds passes at
// most.
func TestCorrectLocksThatLackSomethingAreSkippedOrPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "table.md")
	status, stdout, stderr := execute(t.Context(), t, "kinds", "-backend", "embedded", "-quiet", "-dir", dir,
		"-scenario", "renewal,reentrant", "-duration", "5s", "-exec", "sh -c exit", "-table", file, "-parallel", "2")
	table, err := os.ReadFile(file)
	if err != nil || status == exitViolation || !strings.HasSuffix(stdout, string(table)) {
		t.Fatalf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
	for _, want := range []string{"| renewal | skipped |", "| skipped | skipped |", "| failed |\n"} {
		if !strings.Contains(string(table), want) {
			t.Errorf("no %q in %s", want, table)
		}
	}
}

func TestAConvictedKindIsInTheTable(t *testing.T) {
	kinds := []chaos.Kind{{Lacks: "a"}, {Lacks: "b"}}
	got := kindsTable([]string{"calm", "full"}, kinds, []report.SuiteRun{
		{Report: &report.Report{Verdict: report.Pass}},
		{Skipped: "why"},
		{Report: &report.Report{Verdict: report.Violation}},
		{Failed: "why"},
	})
	want := "| scenario | without a | without b |\n| --- | --- | --- |\n| calm | pass | skipped |\n" +
		"| full | violation | failed |\n"
	if got != want {
		t.Errorf("got %s", got)
	}
}
