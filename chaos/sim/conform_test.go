package sim_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
)

// Clients and masters follow the protocol outside the assumptions, too. Only its promises do not hold there.
func TestEveryRunIsOneThatTheSpecificationAllows(t *testing.T) {
	judged := make(map[string]int)
	for _, p := range sim.Profiles() {
		n := min(schedules, 100)
		if p.Name == "neighbours" || p.Name == "long" {
			n /= 10
		}
		b := &sim.Batch{Profile: p, First: 1, N: n, Oracles: []string{sim.NameSpecification}}
		out := b.Run(t.Context())
		complain(t, b, out)
		for kind, steps := range out.Judged {
			judged[kind] += steps
		}
		t.Logf("%s: judged %v, passed %d", p.Name, out.Judged, out.Passed)
	}
	for kind := range spec.Kinds {
		if judged[kind.String()] == 0 {
			t.Errorf("the specification has judged no step of the kind %q", kind)
		}
	}
}

// A master that deletes another's key breaks the specification, not only a promise.
func TestTheSpecificationRefusesAMasterThatDeletesAnothersKey(t *testing.T) {
	b := &sim.Batch{
		Profile: profile("within"), First: 1, N: 500, Oracles: []string{sim.NameSpecification}, StopAfter: 1,
		Broken: sim.BrokenVariants{PlainDelete: true},
	}
	if out := b.Run(t.Context()); len(out.Failures) == 0 || out.Failures[0].Err != nil {
		t.Errorf("nothing was refused in %d schedules: %v", out.Done, out.Failures)
	}
}

// A master that restarts without its data and votes at once breaks the rule of the restart guard.
func TestTheSpecificationRefusesAVoteWithoutGuard(t *testing.T) {
	b := &sim.Batch{
		Profile: profile("within"), First: 1, N: 500, Oracles: []string{sim.NameSpecification}, StopAfter: 1,
		Broken: sim.BrokenVariants{NoGuard: true},
	}
	if out := b.Run(t.Context()); len(out.Failures) == 0 || out.Failures[0].Err != nil {
		t.Errorf("nothing was refused in %d schedules: %v", out.Done, out.Failures)
	}
}
