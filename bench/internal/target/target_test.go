package target_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/target"
)

func row(scenario, subject string, workers int, ops, p50 float64, extra map[string]float64) result.Row {
	figures := map[string]float64{result.OpsPerS: ops, result.P50: p50}
	maps.Copy(figures, extra)
	return result.Row{
		Key: result.Key{Scenario: scenario, Subject: subject, Workers: workers, Masters: 5}, Figures: figures,
	}
}

func of(kind string, r result.Row) result.Row {
	r.Kind = kind
	return r
}

// outcome returns the only target with this text in its description.
func outcome(t *testing.T, all []target.Outcome, scenario, what string) target.Outcome {
	t.Helper()
	for _, o := range all {
		if o.Scenario == scenario && strings.Contains(o.What, what) {
			return o
		}
	}
	t.Fatalf("no target of %s about %q", scenario, what)
	return target.Outcome{}
}

func TestEachTargetIsReachedOrMissed(t *testing.T) {
	contended := row("contended", "redlock", 32, 400, 1, map[string]float64{
		"wait_p99_us": 300, "ideal_wait_us": 100, "gap_p50_us": 110, "rested_cycle_us": 100, "overlaps": 1,
		"fairness": 0.9,
	})
	four := of("four processes", row("cohort", "redlock", 32, 900_000, 1,
		map[string]float64{"overlaps": 2, "away_max_us": 420_000, "away_allowed_us": 300_000, "fairness": 0.98}))
	all := target.Evaluate([]result.Row{
		row("cost", "redlock", 1, 1, 1, map[string]float64{"commands": 5}),
		row("cost", "redsync", 1, 1, 1, map[string]float64{"commands": 4}),
		row("cost", "redlock", 64, 1, 1, map[string]float64{"bytes_in": 120}),
		of("fenced", row("cost", "redlock", 64, 1, 1, map[string]float64{"bytes_in": 150})),
		of("shared", row("cost", "redlock", 1, 1, 1, map[string]float64{"bytes_in": 300})),
		of("one process", row("cohort", "redsync-mutex", 32, 900_000, 1, nil)),
		of("one process", row("cohort", "redlock", 32, 150_000, 1, map[string]float64{"overlaps": 0})),
		four, contended,
		of("shared", row("kinds", "redlock", 128, 70, 1, nil)),
		of("plain", row("kinds", "redlock", 128, 100, 1, nil)),
		of("fenced", row("kinds", "redlock", 128, 80, 1, nil)),
		row("uncontended", "redlock", 1, 1, 70, nil), row("uncontended", "redsync", 1, 1, 100, nil),
		row("distinct", "redlock", 128, 950, 1, nil), row("distinct", "redsync", 128, 100, 1, nil),
		row("distinct", "redlock", 1024, 500, 1, nil), row("distinct", "limit", 1024, 1000, 0, nil),
	})
	for _, c := range []struct {
		scenario, what string
		value          float64
		verdict        target.Verdict
	}{
		{"uncontended", "redsync", 0.7, target.Met},
		{"uncontended", "fan-out", 0, target.Unmeasured},
		{"distinct", "128 workers", 9.5, target.Goal},
		{"distinct", "limit", 0.5, target.Missed},
		{"distinct", "1,024 workers, cycles/s ÷ redsync", 0, target.Unmeasured},
		{"contended", "waiting", 3, target.Met},
		{"contended", "gap", 1.1, target.Met},
		{"contended", "Jain", 0.9, target.Missed},
		{"contended", "overlapping", 1, target.Missed},
		{"cohort", "handoffs/s", 150_000, target.Missed},
		{"cohort", "longest time a process waits", 1.4, target.Met},
		{"cohort", "Jain", 0.98, target.Met},
		{"cohort", "overlapping holders, one process", 0, target.Goal},
		{"cohort", "overlapping holders, four processes", 2, target.Missed},
		{"kinds", "fenced", 0.8, target.Missed},
		{"kinds", "shared", 0.7, target.Met},
		{"kinds", "two keys", 0, target.Unmeasured},
		{"cost", "1 worker, commands", 1.25, target.Missed},
		{"cost", "64 workers, bytes to", 120, target.Goal},
		{"cost", "64 workers, fenced, bytes", 1.25, target.Goal},
		{"cost", "shared, bytes", 300, target.Goal},
		{"renewed", "lost", 0, target.Unmeasured},
	} {
		o := outcome(t, all, c.scenario, c.what)
		if o.Verdict != c.verdict || o.Value < c.value*0.999 || o.Value > c.value*1.001 {
			t.Errorf("%s, %s: %v and %q, want %v and %q", c.scenario, o.What, o.Value, o.Verdict, c.value, c.verdict)
		}
	}
}

func TestFailedNeedsAMissOrAMissingRow(t *testing.T) {
	met := target.Evaluate([]result.Row{
		row("uncontended", "redlock", 1, 1, 70, nil), row("uncontended", "redsync", 1, 1, 100, nil),
		row("uncontended", "goredis-fanout", 1, 1, 70, nil), row("uncontended", "rueidis", 1, 1, 70, nil),
	})
	if target.Failed(met, map[string]bool{"uncontended": true}, true) {
		t.Error("failed although everything that ran was met")
	}
	if !target.Failed(met, map[string]bool{"uncontended": true, "renewed": true}, true) {
		t.Error("renewed ran and left no row, and that passed")
	}
	missed := target.Evaluate([]result.Row{
		row("uncontended", "redlock", 1, 1, 90, nil), row("uncontended", "redsync", 1, 1, 100, nil),
	})
	if !target.Failed(missed, nil, true) {
		t.Error("0.9 where 0.75 must be reached passed")
	}
}

func TestOnlyTheLimitIsExcusedWithoutItsTool(t *testing.T) {
	rows := []result.Row{
		row("distinct", "redlock", 128, 950, 1, nil), row("distinct", "redsync", 128, 100, 1, nil),
		row("distinct", "redlock", 1024, 1300, 1, nil), row("distinct", "redsync", 1024, 100, 1, nil),
		row("distinct", "redlock", 8192, 1300, 1, map[string]float64{"p99_us": 2}),
	}
	ran := map[string]bool{"distinct": true}
	if target.Failed(target.Evaluate(rows), ran, false) {
		t.Error("failed for the want of redis-benchmark")
	}
	if !target.Failed(target.Evaluate(rows), ran, true) {
		t.Error("the limit was measured, its target was not, and that passed")
	}
	if !target.Failed(target.Evaluate(rows[:2]), ran, false) {
		t.Error("the rows with 1,024 workers are missing, and that passed")
	}
}

func TestWriteShowsBoundAndGoalOfScenariosThatRan(t *testing.T) {
	var out bytes.Buffer
	outcomes := target.Evaluate([]result.Row{
		row("uncontended", "redlock", 1, 1, 90, nil), row("uncontended", "redsync", 1, 1, 100, nil),
	})
	if err := target.Write(&out, outcomes, map[string]bool{"uncontended": true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"p50 ÷ redsync", "0.9", "≤ 0.75", "≤ 0.6", "MISSED", "not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "renewed") {
		t.Errorf("targets of scenarios that did not run are shown:\n%s", out.String())
	}
}
