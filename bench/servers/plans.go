package main

import (
	"cmp"
	"time"

	"github.com/seed-624411e5/redlock/chaos/plan"
)

const (
	ms  = plan.Duration(time.Millisecond)
	sec = plan.Duration(time.Second)
	// ttl is how long a lock, a lease or a session lives without contact. etcd's ttls are whole seconds, at least 2.
	ttl = 2 * sec
)

// plans are the plans for every lock. They are within a lock's assumptions: servers keep the data that they confirmed.
func plans(servers int) []*plan.Plan {
	everybody := func(at, last plan.Duration, fault string) plan.Step {
		return plan.Step{At: at, For: last, Fault: fault}
	}
	one := func(at, last plan.Duration, fault string, n int) plan.Step {
		return plan.Step{At: at, For: last, Fault: fault, Masters: []int{n % servers}}
	}
	cut := func(at, last plan.Duration, clients ...int) plan.Step {
		return plan.Step{At: at, For: last, Fault: "silence", Clients: clients}
	}
	all := []*plan.Plan{
		{Scenario: "calm", Text: "No faults.", Workload: "hot-key", Duration: 6 * sec},
		{
			Scenario: "server-killed", Text: "Servers are killed and started again at once with their data, one at a " +
				"time and then all, while locks are held.",
			// A hold is longer than a restart of a server.
			Workload: "register", TTL: 2 * ttl, Hold: 2500 * ms, Duration: 14 * sec,
			Steps: []plan.Step{
				one(1*sec, 100*ms, "kill", 0), one(5*sec, 100*ms, "kill", 1), everybody(9*sec, 100*ms, "kill"),
			},
		},
		{
			Scenario: "cut-off", Text: "All clients but one are cut off from the servers for twice the ttl, without " +
				"a word, while one holds the lock.",
			Workload: "hot-key", Hold: 3 * sec, Duration: 16 * sec,
			Steps: []plan.Step{cut(1500*ms, 4*sec, 0, 1, 2, 3), cut(9*sec, 4*sec, 1, 2, 3, 4)},
		},
		{
			Scenario: "client-stopped", Text: "Clients that are processes are stopped (SIGSTOP) while they hold the " +
				"lock, for longer than the ttl, and go on.",
			Workload: "children", Hold: sec, Duration: 13 * sec,
			Steps: []plan.Step{everybody(1*sec, 3500*ms, plan.ChildPause), everybody(7*sec, 3500*ms, plan.ChildPause)},
		},
		{
			Scenario: "writer-stopped", Text: "The same, and the holder writes when it goes on, without another look " +
				"at the lock: what only a fencing token stops.",
			Workload: "writers", Hold: sec, Duration: 13 * sec,
			Steps: []plan.Step{everybody(1*sec, 3500*ms, plan.ChildPause), everybody(7*sec, 3500*ms, plan.ChildPause)},
		},
	}
	for _, p := range all {
		p.Inside, p.AOF, p.TTL, p.Masters, p.Clients = true, true, cmp.Or(p.TTL, ttl), servers, 5
	}
	return all
}
