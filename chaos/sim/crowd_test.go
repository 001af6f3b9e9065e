package sim_test

import (
	"slices"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/sim"
)

// The control: with any engine, a client loses quiet locks if everything that it sends waits behind
// the messages that a blip has lost.
func TestVictimsOfOneConnectionAreFound(t *testing.T) {
	blips, harmful := 0, 0
	for seed := uint64(1); blips < 6; seed++ {
		s := sim.Generate(profile("neighbours"), seed)
		if len(s.Faults) == 0 {
			continue
		}
		blips++
		s.Broken.OneConnection = true
		if len(victims(t, s)) > 0 {
			harmful++
		}
		s.Faults = nil
		if found := victims(t, s); len(found) > 0 {
			t.Errorf("seed %d: victims without a blip: %v", seed, found)
		}
	}
	if harmful < 2 { // a blip may meet nothing, or little
		t.Errorf("%d of %d blips harmed anybody", harmful, blips)
	}
}

// victims runs a schedule and checks that the oracle judged both quiet holds and free keys.
func victims(t *testing.T, s *sim.Schedule) []oracle.Violation {
	t.Helper()
	r, err := sim.Run(s)
	must(t, err)
	if r.Counts.QuietHolds < 2 || r.Counts.QuietFree < 20 {
		t.Errorf("%d holds and %d free keys were judged", r.Counts.QuietHolds, r.Counts.QuietFree)
	}
	return slices.DeleteFunc(r.Violations, func(v oracle.Violation) bool { return v.Oracle != oracle.NameVictims })
}
