package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/plan"
)

// TestTheGateRunsTheRecommendedScenarios also replaces some of the gate's flags, and tries a lock that lacks what two
// scenarios need.
func TestTheGateRunsTheRecommendedScenarios(t *testing.T) {
	for _, name := range gateScenarios {
		if _, err := plan.FindScenario(name); err != nil {
			t.Error(err)
		}
	}
	if flags := gateFlags("summary.md"); !slices.Contains(flags, "summary.md") {
		t.Errorf("%q", flags)
	}
	if _, _, help := execute(t.Context(), t, "gate", "-h"); !strings.HasPrefix(help, "Usage of redlock-chaos gate") ||
		!strings.Contains(help, `(default "chaos-gate")`) || !strings.Contains(help, "(default 25s)") {
		t.Errorf("%s", help)
	}
	t.Setenv("GITHUB_STEP_SUMMARY", "")
	dir := t.TempDir()
	status, stdout, stderr := execute(t.Context(), t, "gate", "-backend", "embedded", "-quiet", "-subject", "textbook",
		"-dir", dir, "-scenario", "renewal,shared")
	junit, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	if status != exitUnknown || strings.Count(stdout, "SKIPPED") != 2 || err != nil ||
		!strings.Contains(stdout, "\n2 runs: 2 skipped: ") || strings.Contains(stdout, "can't do this") ||
		!strings.Contains(string(junit), "shared/seed-1") {
		t.Errorf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
}
