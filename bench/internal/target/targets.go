package target

import (
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
)

// ours is the name of this library's subject.
const ours = "redlock"

// againstLimit is the one target that needs a tool which may not be installed.
const againstLimit = "1,024 workers, cycles/s ÷ redis-benchmark's limit"

func targets() []Target {
	atMost := func(scenario, what string, atLeast, goal float64, value func(rows) (float64, bool)) Target {
		return Target{Scenario: scenario, What: what, AtLeast: atLeast, Goal: goal, value: value}
	}
	least := func(scenario, what string, atLeast, goal float64, value func(rows) (float64, bool)) Target {
		return Target{Scenario: scenario, What: what, AtLeast: atLeast, Goal: goal, Floor: true, value: value}
	}
	return []Target{
		atMost("uncontended", "p50 ÷ redsync", 0.75, 0.65, against("uncontended", 1, "p50_us", "redsync")),
		atMost("uncontended", "p50 ÷ bare go-redis fan-out", 1.10, 1, against("uncontended", 1, "p50_us", "goredis-fanout")),
		least("distinct", "128 workers, cycles/s ÷ redsync", 6, 9, against("distinct", 128, "ops_per_s", "redsync")),
		least("distinct", "1,024 workers, cycles/s ÷ redsync", 9, 12, against("distinct", 1024, "ops_per_s", "redsync")),
		least("distinct", againstLimit, 0.45, 0.7, against("distinct", 1024, "ops_per_s", "limit")),
		atMost("stopped", "1 worker, p50 ÷ healthy", 1.25, 1, within("stopped", 1, "p50_us", "healthy_p50_us")),
		atMost("stopped", "1 worker, p99 ÷ healthy", 1.25, 1, within("stopped", 1, "p99_us", "healthy_p99_us")),
		atMost("stopped", "128 workers, p50 ÷ healthy", 1.25, 1, within("stopped", 128, "p50_us", "healthy_p50_us")),
		atMost("stopped", "128 workers, p99 ÷ healthy", 1.25, 1, within("stopped", 128, "p99_us", "healthy_p99_us")),
		atMost("spread", "1 worker, acquire p50 ÷ third fastest master", 1.15, 1.05,
			within("spread", 1, "acquire_p50_us", "quorum_delay_us")),
		atMost("spread", "128 workers, acquire p50 ÷ third fastest master", 1.5, 1.1,
			within("spread", 128, "acquire_p50_us", "quorum_delay_us")),
		atMost("contended", "waiting p99 ÷ a perfect queue", 5, 1.5, within("contended", anyWorkers, "wait_p99_us", "ideal_wait_us")),
		atMost("contended", "handoff gap p50 ÷ one uncontended cycle", 2, 1.2, within("contended", anyWorkers, "gap_p50_us", "cycle_us")),
		least("contended", "Jain fairness", 0.95, 0.99, plain("contended", anyWorkers, "fairness")),
		atMost("contended", "overlapping holders", 0, 0, plain("contended", anyWorkers, "overlaps")),
		least("cohort", "32 goroutines of one process, handoffs/s", 200_000, 1_000_000, ofCohort(scenario.OneProcess, "ops_per_s")),
		atMost("cohort", "longest time a process waits ÷ what the window allows", 1.5, 1, awayAgainstWindow),
		least("cohort", "Jain fairness of four processes", 0.95, 0.99, ofCohort(scenario.FourProcesses, "fairness")),
		atMost("cohort", "overlapping holders, one process", 0, 0, ofCohort(scenario.OneProcess, "overlaps")),
		atMost("cohort", "overlapping holders, four processes", 0, 0, ofCohort(scenario.FourProcesses, "overlaps")),
		least("kinds", "128 workers, fenced ÷ plain, cycles/s", 0.7, 0.85, fencedAgainstPlain),
		atMost("renewed", "heap a hold, bytes", 1500, 800, plain("renewed", anyWorkers, "heap_per_hold_bytes")),
		atMost("renewed", "holds lost", 0, 0, plain("renewed", anyWorkers, "lost")),
		atMost("allocations", "heap allocations a cycle", 70, 40, plain("allocations", 1, "allocs_per_op")),
	}
}

// anyWorkers stands for whatever number of workers a scenario ran with.
const anyWorkers = 0

type rows []result.Row

func (rs rows) find(scenario, subject, kind string, workers int) (result.Row, bool) {
	for _, r := range rs {
		if r.Scenario == scenario && r.Subject == subject && r.Kind == kind && (workers == anyWorkers || r.Workers == workers) {
			return r, true
		}
	}
	return result.Row{}, false
}

func (rs rows) number(scenario, subject, kind string, workers int, name string) (float64, bool) {
	r, ok := rs.find(scenario, subject, kind, workers)
	if !ok {
		return 0, false
	}
	return r.Get(name)
}

// over is a/b; without either there is no ratio, and neither is there one to nothing.
func over(a float64, haveA bool, b float64, haveB bool) (float64, bool) {
	if !haveA || !haveB || b == 0 {
		return 0, false
	}
	return a / b, true
}

// against is ours over a rival's number of the same name.
func against(scenario string, workers int, name, rival string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) {
		a, haveA := rs.number(scenario, ours, "", workers, name)
		b, haveB := rs.number(scenario, rival, "", workers, name)
		return over(a, haveA, b, haveB)
	}
}

// within is one of our numbers over another of the same row.
func within(scenario string, workers int, name, reference string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) {
		a, haveA := rs.number(scenario, ours, "", workers, name)
		b, haveB := rs.number(scenario, ours, "", workers, reference)
		return over(a, haveA, b, haveB)
	}
}

// plain is one of our numbers as it is.
func plain(scenario string, workers int, name string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) { return rs.number(scenario, ours, "", workers, name) }
}

// ofCohort is one of our numbers in the scenario cohort as it is.
func ofCohort(kind, name string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) { return rs.number("cohort", ours, kind, anyWorkers, name) }
}

func awayAgainstWindow(rs rows) (float64, bool) {
	a, haveA := rs.number("cohort", ours, scenario.FourProcesses, anyWorkers, "away_max_us")
	b, haveB := rs.number("cohort", ours, scenario.FourProcesses, anyWorkers, "away_allowed_us")
	return over(a, haveA, b, haveB)
}

func fencedAgainstPlain(rs rows) (float64, bool) {
	a, haveA := rs.number("kinds", ours, "fenced", 128, "ops_per_s")
	b, haveB := rs.number("kinds", ours, "plain", 128, "ops_per_s")
	return over(a, haveA, b, haveB)
}
