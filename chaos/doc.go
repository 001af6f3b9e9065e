// Package chaos tests whether a lock holds. It runs a workload on real masters, breaks network, servers, clocks and
// clients by a plan, and records all observations. Oracles then judge the record. They look for overlapping holds,
// tokens out of order, lost updates of a protected register, orphans, leaked goroutines, low availability and slow
// recovery. They also check that each planned fault really happened.
//
//	report, err := chaos.Run(ctx, chaos.Config{Backend: "process", Scenario: "partitions", Seed: 7})
//
// An error means that the run could not be made. The findings of a run are in the report, with the
// verdict pass, violation or unknown. The package can report "this lock is broken" about any
// library: see [workload.Subject]. In tests use package chaostest.
//
// # Parts
//
// Run draws a plan (package plan), opens masters (masters) behind proxies (network), and lets clients work (workload,
// internal/clients) while the plan's faults come and go (internal/faults). All that happens goes into one record
// (history). Oracles judge the record (oracle), internal/leftovers what stayed behind, and internal/verdict
// concludes; internal/machine says for how long the machine gave the run no time. Package report writes the findings.
package chaos
