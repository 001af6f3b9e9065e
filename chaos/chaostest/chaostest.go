// Package chaostest runs chaos in a Go test and fails it with the reason, the seed, and the place of the report.
//
//	func TestOurLockUnderPartitions(t *testing.T) {
//		chaostest.Run(t, chaos.Config{Backend: "process", Scenario: "partitions", Duration: 10 * time.Second})
//	}
//
// Workloads with clients that are processes start the test binary again: call [workload.Main] first thing in TestMain.
package chaostest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// TB is the part of testing.TB that is used.
type TB interface {
	Helper()
	Context() context.Context
	Name() string
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// most is how many runs Run makes to get one that shows something.
const most = 3

// Run makes one run and fails the test at once unless its verdict is pass; it returns the report of a run that passed.
// If a run shows nothing because the machine is busy, Run makes another, three at most.
//
// The report's files are kept when the test fails and removed when it passes, unless cfg.Dir names a directory. A run
// that could not be set up fails the test too: a machine that lacks the backend's requirements has tested nothing. If
// the subject lacks a feature that the scenario needs, the test is skipped.
func Run(tb TB, cfg chaos.Config) *chaos.Report {
	tb.Helper()
	own := cfg.Dir == ""
	if own {
		dir, err := os.MkdirTemp("", "chaos-report-")
		if err != nil {
			tb.Fatalf("chaostest: %v", err)
		}
		cfg.Dir = dir
	}
	rep, err := chaos.Run(tb.Context(), cfg)
	for n := 1; n < most && err == nil && rep.ShowsNothing(); n++ {
		tb.Logf("chaos: the machine gave the run too little time, so it is made again: %s",
			strings.Join(rep.Reasons, "\n"))
		rep, err = chaos.Run(tb.Context(), cfg)
	}
	if rep == nil && errors.Is(err, workload.ErrUnsupported) {
		tb.Skipf("chaostest: %v", err)
	}
	if rep == nil || err != nil {
		tb.Fatalf("chaostest: %v", err)
	}
	if rep.Failed() {
		tb.Fatalf("%s", failure(tb.Name(), rep))
	}
	for _, note := range rep.Notes {
		tb.Logf("chaos: %s", note)
	}
	if own {
		if err := os.RemoveAll(cfg.Dir); err != nil {
			tb.Fatalf("chaostest: %v", err)
		}
	}
	return rep
}

// failure is the text of a failed test.
func failure(test string, r *report.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "chaos verdict: %s (%s in scenario %s, seed %d)\n", r.Verdict, r.Subject, r.Scenario, r.Seed)
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "  %s\n", reason)
	}
	fmt.Fprintf(&b, "report:  %s\nhistory: %s\n", r.Files["html"], r.Files["history"])
	fmt.Fprintf(&b, "replay:  go test -run '^%s$' with chaos.Config{Scenario: %q, Seed: %d}, or\n         %s", test,
		r.Scenario, r.Seed, r.Replay)
	return b.String()
}
