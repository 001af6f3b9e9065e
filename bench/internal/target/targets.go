package target

import (
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// ours is the name of this library's subject.
const ours = "redlock"

// againstLimit is the target that needs redis-benchmark, which may not be installed.
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
		atMost("uncontended", "p50 ÷ bare go-redis fan-out", 1.10, 1,
			against("uncontended", 1, "p50_us", "goredis-fanout")),
		least("distinct", "128 workers, cycles/s ÷ redsync", 6, 9, against("distinct", 128, "ops_per_s", "redsync")),
		least("distinct", "1,024 workers, cycles/s ÷ redsync", 12, 12,
			against("distinct", 1024, "ops_per_s", "redsync")),
		least("distinct", againstLimit, 0.7, 0.7, against("distinct", 1024, "ops_per_s", "limit")),
		atMost("stopped", "1 worker, p50 ÷ healthy", 1.25, 1, within("stopped", 1, "p50_us", "healthy_p50_us")),
		atMost("stopped", "1 worker, p99 ÷ healthy", 1.25, 1, within("stopped", 1, "p99_us", "healthy_p99_us")),
		atMost("stopped", "128 workers, p50 ÷ healthy", 1.25, 1, within("stopped", 128, "p50_us", "healthy_p50_us")),
		atMost("stopped", "128 workers, p99 ÷ healthy", 1.25, 1, within("stopped", 128, "p99_us", "healthy_p99_us")),
		atMost("spread", "1 worker, acquire p50 ÷ third fastest master", 1.15, 1.05,
			within("spread", 1, "acquire_p50_us", "quorum_delay_us")),
		atMost("spread", "128 workers, acquire p50 ÷ third fastest master's PING meanwhile", 1.25, 1.1,
			within("spread", 128, "acquire_p50_us", "busy_ping_us")),
		atMost("contended", "waiting p99 ÷ a perfect queue", 5, 1.5,
			within("contended", anyWorkers, "wait_p99_us", "ideal_wait_us")),
		atMost("contended", "handoff gap p50 ÷ one cycle after a rest", 1.2, 1,
			within("contended", anyWorkers, "gap_p50_us", "rested_cycle_us")),
		least("contended", "Jain fairness", 0.95, 0.99, plain("contended", anyWorkers, "fairness")),
		atMost("contended", "overlapping holders", 0, 0, plain("contended", anyWorkers, "overlaps")),
		atMost("distant", "handoff gap p50 ÷ one cycle after a rest", 1.2, 1,
			within("distant", anyWorkers, "gap_p50_us", "rested_cycle_us")),
		atMost("distant", "overlapping holders", 0, 0, plain("distant", anyWorkers, "overlaps")),
		least("cohort", "32 goroutines of one process, handoffs/s", 200_000, 1_000_000,
			ofCohort(scenario.OneProcess, "ops_per_s")),
		atMost("cohort", "longest time a process waits ÷ what the window allows", 1.5, 1, awayAgainstWindow()),
		least("cohort", "Jain fairness of four processes", 0.95, 0.99, ofCohort(scenario.FourProcesses, "fairness")),
		atMost("cohort", "overlapping holders, one process", 0, 0, ofCohort(scenario.OneProcess, "overlaps")),
		atMost("cohort", "overlapping holders, four processes", 0, 0, ofCohort(scenario.FourProcesses, "overlaps")),
		least("kinds", "128 workers, fenced ÷ plain, cycles/s", 0.85, 0.85, ofPlain("fenced")),
		least("kinds", "128 workers, shared ÷ plain, cycles/s", 0.6, 0.8, ofPlain("shared")),
		least("kinds", "128 workers, exclusive ÷ plain, cycles/s", 0.6, 0.8, ofPlain("exclusive")),
		least("kinds", "128 workers, reentrant ÷ plain, cycles/s", 0.6, 0.8, ofPlain("reentrant")),
		least("kinds", "128 workers, two keys ÷ plain, cycles/s", 0.6, 0.8, ofPlain("two keys")),
		atMost("cost", "1 worker, commands on a master ÷ redsync's", 1, 1, against("cost", 1, "commands", "redsync")),
		atMost("cost", "1 worker, bytes to a master ÷ redsync's", 1, 1, against("cost", 1, "bytes_in", "redsync")),
		atMost("cost", "1 worker, processor time of a master ÷ redsync's", 1, 1,
			against("cost", 1, "master_cpu_us", "redsync")),
		atMost("cost", "64 workers, commands on a master", 1.1, 1.1, plain("cost", 64, "commands")),
		atMost("cost", "64 workers, bytes to a master", 130, 130, plain("cost", 64, "bytes_in")),
		atMost("cost", "64 workers, fenced, commands ÷ plain", 1.5, 1.5, fencedCost("commands")),
		atMost("cost", "64 workers, fenced, bytes ÷ plain", 1.5, 1.5, fencedCost("bytes_in")),
		atMost("cost", "1 worker, shared, commands on a master", 8, 8, ofKind("cost", "shared", 1, "commands")),
		atMost("cost", "1 worker, shared, bytes to a master", 300, 300, ofKind("cost", "shared", 1, "bytes_in")),
		atMost("renewed", "heap a hold, bytes", 1500, 800, plain("renewed", anyWorkers, "heap_per_hold_bytes")),
		atMost("renewed", "holds lost", 0, 0, plain("renewed", anyWorkers, "lost")),
		atMost("allocations", "heap allocations a cycle", 15, 10, plain("allocations", 1, "allocs_per_op")),
	}
}

// anyWorkers means any number of workers.
const anyWorkers = 0

type rows []result.Row

func (rs rows) find(scenario, subject, kind string, workers int) (result.Row, bool) {
	for _, r := range rs {
		if r.Scenario == scenario && r.Subject == subject && r.Kind == kind &&
			(workers == anyWorkers || r.Workers == workers) {
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

// cell is one number of one row.
type cell struct {
	scenario, subject, kind string
	workers                 int
	name                    string
}

func (c cell) of(rs rows) (float64, bool) {
	return rs.number(c.scenario, c.subject, c.kind, c.workers, c.name)
}

// over is a/b. It is false if either is missing or b is 0.
func over(a, b cell) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) {
		x, haveX := a.of(rs)
		y, haveY := b.of(rs)
		if !haveX || !haveY || y == 0 {
			return 0, false
		}
		return x / y, true
	}
}

// against is ours over a rival's number of the same name.
func against(scenario string, workers int, name, rival string) func(rows) (float64, bool) {
	return over(cell{scenario, ours, "", workers, name}, cell{scenario, rival, "", workers, name})
}

// within is one of our numbers over another of the same row.
func within(scenario string, workers int, name, reference string) func(rows) (float64, bool) {
	return over(cell{scenario, ours, "", workers, name}, cell{scenario, ours, "", workers, reference})
}

// plain returns one of our numbers unchanged.
func plain(scenario string, workers int, name string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) { return rs.number(scenario, ours, "", workers, name) }
}

// ofCohort returns one of our numbers in the scenario cohort unchanged.
func ofCohort(kind, name string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) { return rs.number("cohort", ours, kind, anyWorkers, name) }
}

// awayAgainstWindow returns how long one of four processes is without the key, divided by the time that the window
// allows.
func awayAgainstWindow() func(rows) (float64, bool) {
	four := cell{"cohort", ours, scenario.FourProcesses, anyWorkers, "away_max_us"}
	allowed := four
	allowed.name = "away_allowed_us"
	return over(four, allowed)
}

// ofKind returns one number of a kind unchanged.
func ofKind(scenario, kind string, workers int, name string) func(rows) (float64, bool) {
	return func(rs rows) (float64, bool) { return rs.number(scenario, ours, kind, workers, name) }
}

// ofPlain returns a kind's cycles a second divided by those for plain locks, with 128 workers.
func ofPlain(kind string) func(rows) (float64, bool) {
	return over(cell{"kinds", ours, kind, 128, "ops_per_s"}, cell{"kinds", ours, subject.Plain, 128, "ops_per_s"})
}

// fencedCost returns the cost of a fenced cycle divided by the cost of a plain one, with 64 workers.
func fencedCost(name string) func(rows) (float64, bool) {
	return over(cell{"cost", ours, "fenced", 64, name}, cell{"cost", ours, "", 64, name})
}
