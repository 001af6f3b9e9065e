package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/plan"
)

// TestTheGateRunsTheRecommendedScenarios has flags that replace the gate's own, and a lock for which some scenarios are
// skipped.
func TestTheGateRunsTheRecommendedScenarios(t *testing.T) {
	for _, name := range gateScenarios {
		if _, err := plan.FindScenario(name); err != nil {
			t.Error(err)
		}
	}
	if args := gateArgs([]string{"-seeds", "1..2"}, "summary.md"); !slices.Contains(args, "summary.md") ||
		args[len(args)-1] != "1..2" {
		t.Errorf("%q", args)
	}
	t.Setenv("GITHUB_STEP_SUMMARY", "")
	dir := t.TempDir()
	status, stdout, stderr := execute(t.Context(), t, "gate", "-backend", "embedded", "-quiet", "-subject", "textbook",
		"-dir", dir, "-scenario", "renewal,shared")
	junit, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if status != exitUnknown || strings.Count(stdout, "SKIPPED") != 2 || err != nil ||
		!strings.Contains(string(junit), "shared/seed-1") {
		t.Errorf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
}
