package verdict_test

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/verdict"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

// TestHazard128And129And131And133HistoriesThatPassedOnceDoNotPass has a history of each lock that the harness once let
// pass.
func TestHazard128And129And131And133HistoriesThatPassedOnceDoNotPass(t *testing.T) {
	for name, want := range map[string]struct {
		verdict report.Verdict
		reason  string
	}{
		"dead-while-one-master-is-down": {report.Violation, "outage: while kill was on"},
		"release-always-error":          {report.Violation, "operations: 20 of 20 releases failed"},
		"extend-always-error":           {report.Violation, "operations: 20 of 20 extensions failed"},
		"one-acquisition":               {report.Unknown, "too little happened: 1 acquisitions"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open("testdata/" + name + ".jsonl")
			must(t, err)
			defer file.Close()
			events, err := history.Read(file)
			must(t, err)
			j, err := verdict.Check(events, oracle.Limits{}, true)
			must(t, err)
			if j.Verdict != want.verdict || !strings.HasPrefix(j.Reasons[0], want.reason) {
				t.Errorf("%s: %q", j.Verdict, j.Reasons)
			}
		})
	}
}
