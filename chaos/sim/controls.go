package sim

import (
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/internal/sabotage"
)

// Control is a negative control: a mistake, and where it has to be noticed. On the same schedules the same oracles find
// nothing wrong with the engine as it is.
type Control struct {
	Name    string
	Broken  BrokenVariants
	Profile Profile
	Oracles []string
}

// Controls are all negative controls.
func Controls() []Control {
	engine := func(s sabotage.Switches) BrokenVariants { return BrokenVariants{Engine: s} }
	return []Control{
		{"half-quorum", engine(sabotage.Switches{HalfQuorum: true}), Within(), []string{oracle.NameOverlap}},
		{"no-drift", engine(sabotage.Switches{NoDrift: true}), Within(), []string{oracle.NameOverlap}},
		{"no-drift-slow", engine(sabotage.Switches{NoDrift: true}), SlowClients(), []string{oracle.NameOverlap}},
		{"drop-stragglers", engine(sabotage.Switches{DropStragglers: true}), Within(), []string{oracle.NameOrphan}},
		{"unordered-release", engine(sabotage.Switches{UnorderedRelease: true}), Within(), []string{oracle.NameOrphan}},
		{"count-repairs", engine(sabotage.Switches{CountRepairs: true}), Blackout(), []string{oracle.NameContinuity}},
		{"late-extend", engine(sabotage.Switches{LateExtend: true}), Within(), []string{oracle.NameDoneAfterBound}},
		{"bound-from-now", engine(sabotage.Switches{BoundFromNow: true}), Within(), []string{oracle.NameOverlap}},
		{"max-token", engine(sabotage.Switches{MaxToken: true}), Tokens(), []string{oracle.NameTokenOrder}},
		{"plain-delete", BrokenVariants{PlainDelete: true}, Within(), []string{oracle.NameForeignRelease}},
		{"no-guard", BrokenVariants{NoGuard: true}, Within(), []string{oracle.NameOverlap}},
	}
}
