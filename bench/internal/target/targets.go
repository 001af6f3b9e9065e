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
	atMost := func(scenario, what string, atLeast, goal float64, value value) Target {
		return Target{Scenario: scenario, What: what, AtLeast: atLeast, Goal: goal, value: value}
	}
	least := func(scenario, what string, atLeast, goal float64, value value) Target {
		return Target{Scenario: scenario, What: what, AtLeast: atLeast, Goal: goal, Floor: true, value: value}
	}
	ofPlain := func(kind string) value { return between(kind, subject.Plain, 128, "ops_per_s") }
	const one, four = scenario.OneProcess, scenario.FourProcesses
	return []Target{
		atMost("uncontended", "p50 ÷ redsync", 0.75, 0.6, against(1, "p50_us", "redsync")),
		atMost("uncontended", "p50 ÷ fan-out over rueidis", 1.10, 0.9, against(1, "p50_us", "rueidis")),
		atMost("uncontended", "p50 ÷ bare go-redis fan-out", 1.10, 1, against(1, "p50_us", "goredis-fanout")),
		atMost("apart", "p50 ÷ redsync", 0.75, 0.6, against(1, "p50_us", "redsync")),
		atMost("apart", "p50 ÷ fan-out over rueidis", 1.10, 0.9, against(1, "p50_us", "rueidis")),
		atMost("cold", "a client's first lock, p50 ÷ redsync", 1.2, 1.2, against(1, "p50_us", "redsync")),
		least("distinct", "128 workers, cycles/s ÷ redsync", 6, 9, against(128, "ops_per_s", "redsync")),
		least("distinct", "1,024 workers, cycles/s ÷ redsync", 12, 12, against(1024, "ops_per_s", "redsync")),
		least("distinct", againstLimit, 0.7, 0.7, against(1024, "ops_per_s", "limit")),
		atMost("distinct", "8,192 workers, p99 ÷ p50", 3, 3, within("", 8192, "p99_us", "p50_us")),
		atMost("stopped", "1 worker, p50 ÷ healthy", 1.25, 1, within("", 1, "p50_us", "healthy_p50_us")),
		atMost("stopped", "1 worker, p99 ÷ healthy", 1.25, 1, within("", 1, "p99_us", "healthy_p99_us")),
		atMost("stopped", "128 workers, p50 ÷ healthy", 1.25, 1, within("", 128, "p50_us", "healthy_p50_us")),
		atMost("stopped", "128 workers, p99 ÷ healthy", 1.25, 1, within("", 128, "p99_us", "healthy_p99_us")),
		atMost("spread", "1 worker, acquire p50 ÷ third fastest master", 1.15, 1.05,
			within("", 1, "acquire_p50_us", "quorum_delay_us")),
		atMost("spread", "128 workers, acquire p50 ÷ third fastest master's PING meanwhile", 1.25, 1.1,
			within("", 128, "acquire_p50_us", "busy_ping_us")),
		atMost("contended", "waiting p99 ÷ a perfect queue", 5, 1.5,
			within("", anyWorkers, "wait_p99_us", "ideal_wait_us")),
		atMost("contended", "handoff gap p50 ÷ one cycle after a rest", 1.2, 1,
			within("", anyWorkers, "gap_p50_us", "rested_cycle_us")),
		least("contended", "Jain fairness", 0.95, 0.99, plain("", anyWorkers, "fairness")),
		least("contended", "handoffs/s ÷ redsync", 1.1, 1.1, against(anyWorkers, "ops_per_s", "redsync")),
		atMost("contended", "overlapping holders", 0, 0, plain("", anyWorkers, "overlaps")),
		atMost("distant", "handoff gap p50 ÷ one cycle after a rest", 1.2, 1,
			within("", anyWorkers, "gap_p50_us", "rested_cycle_us")),
		atMost("distant", "overlapping holders", 0, 0, plain("", anyWorkers, "overlaps")),
		least("cohort", "32 goroutines of one process, handoffs/s", 200_000, 1_000_000,
			plain(one, anyWorkers, "ops_per_s")),
		atMost("cohort", "longest time a process waits ÷ what the window allows", 1.5, 1,
			within(four, anyWorkers, "away_max_us", "away_allowed_us")),
		least("cohort", "Jain fairness of four processes", 0.95, 0.99, plain(four, anyWorkers, "fairness")),
		atMost("cohort", "overlapping holders, one process", 0, 0, plain(one, anyWorkers, "overlaps")),
		atMost("cohort", "overlapping holders, four processes", 0, 0, plain(four, anyWorkers, "overlaps")),
		least("kinds", "128 workers, fenced ÷ plain, cycles/s", 0.85, 0.9, ofPlain("fenced")),
		least("kinds", "128 workers, shared ÷ plain, cycles/s", 0.6, 0.8, ofPlain("shared")),
		least("kinds", "128 workers, exclusive ÷ plain, cycles/s", 0.6, 0.8, ofPlain("exclusive")),
		least("kinds", "128 workers, reentrant ÷ plain, cycles/s", 0.6, 0.8, ofPlain("reentrant")),
		least("kinds", "128 workers, two keys ÷ plain, cycles/s", 0.6, 0.8, ofPlain("two keys")),
		atMost("cost", "1 worker, commands on a master ÷ redsync's", 1, 1, against(1, "commands", "redsync")),
		atMost("cost", "1 worker, bytes to a master ÷ redsync's", 1, 1, against(1, "bytes_in", "redsync")),
		atMost("cost", "1 worker, processor time of a master ÷ redsync's", 1, 1,
			against(1, "master_cpu_us", "redsync")),
		atMost("cost", "64 workers, commands on a master", 1.1, 1.1, plain("", 64, "commands")),
		atMost("cost", "64 workers, bytes to a master", 130, 130, plain("", 64, "bytes_in")),
		atMost("cost", "64 workers, fenced, commands ÷ plain", 1.5, 1.5, between("fenced", "", 64, "commands")),
		atMost("cost", "64 workers, fenced, bytes ÷ plain", 1.5, 1.5, between("fenced", "", 64, "bytes_in")),
		atMost("cost", "1 worker, shared, commands on a master", 8, 8, plain("shared", 1, "commands")),
		atMost("cost", "1 worker, shared, bytes to a master", 300, 300, plain("shared", 1, "bytes_in")),
		atMost("renewed", "heap a hold, bytes", 1500, 800, plain("", anyWorkers, "heap_per_hold_bytes")),
		atMost("renewed", "holds lost", 0, 0, plain("", anyWorkers, "lost")),
		atMost("allocations", "heap allocations a cycle", 15, 10, plain("", 1, "allocs_per_op")),
	}
}

// anyWorkers means any number of workers.
const anyWorkers = 0

// cell is one number of one row of a target's scenario.
type cell struct {
	subject, kind string
	workers       int
	name          string
}

// in looks the number up; false if it is not there.
func (c cell) in(rows []result.Row) (float64, bool) {
	for _, r := range rows {
		if r.Subject == c.subject && r.Kind == c.kind && (c.workers == anyWorkers || r.Workers == c.workers) {
			return r.Get(c.name)
		}
	}
	return 0, false
}

// over is a/b. It is false if either is missing or b is 0.
func over(a, b cell) value {
	return func(rows []result.Row) (float64, bool) {
		x, haveX := a.in(rows)
		y, haveY := b.in(rows)
		if !haveX || !haveY || y == 0 {
			return 0, false
		}
		return x / y, true
	}
}

// plain is one of our numbers unchanged, of a kind of row or of "".
func plain(kind string, workers int, name string) value { return cell{ours, kind, workers, name}.in }

// against is ours over a rival's number of the same name.
func against(workers int, name, rival string) value {
	return over(cell{ours, "", workers, name}, cell{rival, "", workers, name})
}

// within is one of our numbers over another of the same row.
func within(kind string, workers int, name, reference string) value {
	return over(cell{ours, kind, workers, name}, cell{ours, kind, workers, reference})
}

// between is a number of one kind of row over the same number of another.
func between(kind, reference string, workers int, name string) value {
	return over(cell{ours, kind, workers, name}, cell{ours, reference, workers, name})
}
