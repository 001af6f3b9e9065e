package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
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
	away := &report.Report{
		Verdict: report.Unknown, Plan: &plan.Plan{Defining: []string{"disconnect"}},
		Unavailable: map[string]string{"disconnect": "why"},
	}
	runs := []report.SuiteRun{{Report: away}, {Report: &report.Report{Verdict: report.Pass}}}
	if got := kindsTable([]string{"unplugged"}, kinds, runs); !strings.HasSuffix(got, "| impossible here | pass |\n") {
		t.Errorf("got %s", got)
	}
	want := "| scenario | without a | without b |\n| --- | --- | --- |\n| calm | pass | skipped |\n" +
		"| full | violation | failed |\n"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestTheStatusOfKindsIsTheWorstPossible(t *testing.T) {
	of := func(v report.Verdict) report.SuiteRun {
		return report.SuiteRun{Report: &report.Report{
			Verdict: v, Plan: &plan.Plan{Defining: []string{"kill", "pause"}},
			Unavailable: map[string]string{"kill": "why"},
		}}
	}
	away := of(report.Unknown)
	away.Report.Unavailable["pause"] = "why"
	pass := of(report.Pass)
	for want, runs := range map[int][]report.SuiteRun{
		exitPass: {pass, away, {Skipped: "why"}}, exitUnknown: {of(report.Unknown), away},
		exitSetup: {{Failed: "why"}, of(report.Unknown)}, exitViolation: {of(report.Violation), {Failed: "why"}},
	} {
		if got := kindsStatus(t.Context(), runs); got != want {
			t.Errorf("%v: status %d, want %d", runs, got, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := kindsStatus(ended, []report.SuiteRun{pass}); got != exitUnknown {
		t.Errorf("interrupted: status %d", got)
	}
}
