package sim_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
)

// Clients and masters follow the protocol outside the assumptions, too. Only its promises do not hold there.
func TestOutsideTheAssumptionsTheSpecificationIsFollowed(t *testing.T) {
	for _, p := range sim.Profiles() {
		if p.Promised {
			continue
		}
		b := &sim.Batch{Profile: p, First: 1, N: 100, Oracles: []string{sim.NameSpecification}}
		out := b.Run(t.Context())
		complain(t, b, out)
		if out.Done != b.N || len(out.Judged) == 0 {
			t.Errorf("%s: %d runs, judged %v", p.Name, out.Done, out.Judged)
		}
	}
}

// A master that deletes another's key breaks the specification, not only a promise. One that restarts without its data
// and votes at once breaks the rule of the restart guard.
func TestTheSpecificationRefusesMastersThatBreakItsRules(t *testing.T) {
	for _, broken := range []sim.BrokenVariants{{PlainDelete: true}, {NoGuard: true}} {
		b := &sim.Batch{
			Profile: profile("within"), First: 1, N: 500, Oracles: []string{sim.NameSpecification}, StopAfter: 1,
			Broken: broken,
		}
		if out := b.Run(t.Context()); len(out.Failures) == 0 || out.Failures[0].Err != nil {
			t.Errorf("%+v: nothing was refused in %d schedules: %v", broken, out.Done, out.Failures)
		}
	}
}
