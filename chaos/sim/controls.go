package sim

import (
	"context"
	"fmt"
	"io"

	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

// Control is a negative control: a deliberate mistake, and the oracles that must notice it. On the
// same schedules those oracles must find nothing wrong in the unchanged engine.
type Control struct {
	Name    string
	Broken  BrokenVariants
	Profile Profile
	Oracles []string
	// First is the seed to begin with where it takes long from the first one.
	First uint64
}

// Controls are all negative controls: the mutants of the engine, and mistakes around it.
func Controls() []Control {
	var out []Control
	for _, m := range mutant.All() {
		for _, s := range m.Sim {
			c := Control{
				Name: m.Name, Broken: BrokenVariants{Mutant: m.Name}, Oracles: []string{s.Oracle},
				First: max(1, s.First),
			}
			if s.Name != "" {
				c.Name = s.Name
			}
			c.Profile, _ = Named(s.Profile) // a test checks every seed
			out = append(out, c)
		}
	}
	around := func(name string, broken BrokenVariants, profile, oracle string) {
		p, _ := Named(profile)
		if name == "no-guard-after-rollback" { // it needs a loss of the last writes only, to show when that is harmful
			p.faults = []FaultKind{Rollback, Rollback, Pause, CutRequests}
		}
		out = append(out, Control{name, broken, p, []string{oracle}, 1})
	}
	around("plain-delete", BrokenVariants{PlainDelete: true}, "within", oracle.NameForeignRelease)
	around("full-denies", BrokenVariants{FullDenies: true}, "full", oracle.NameKept)
	around("no-guard", BrokenVariants{NoGuard: true}, "within", oracle.NameOverlap)
	around("no-guard-after-rollback", BrokenVariants{NoGuard: true}, "restarts", oracle.NameOverlap)
	around("no-wait", BrokenVariants{NoWait: true}, "membership", oracle.NameOverlap)
	around("no-wait-after-announcement", BrokenVariants{NoWait: true}, "generations", oracle.NameOverlap)
	around("not-announced", BrokenVariants{NotAnnounced: true}, "generations", oracle.NameOverlap)
	return out
}

// builtFor returns an error where this program was not built with the mutant that a schedule wants, or with another
// one.
func (b *BrokenVariants) builtFor() error {
	switch has := mutant.Built(); {
	case b.Mutant == has:
		return nil
	case has != "":
		return fmt.Errorf("sim: this program has the mutant %s of the engine, and the schedule wants %q", has, b.Mutant)
	default:
		return fmt.Errorf("sim: the schedule wants the mutant %s of the engine, and this program was not built with it",
			b.Mutant)
	}
}

// asMutant runs the command in a build with a mutant.
func asMutant(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	m, err := mutant.Find(name)
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return exitUsage
	}
	status, err := m.Run(ctx, mutant.SimCommand, args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos sim: %v\n", err)
		return exitUnknown
	}
	return status
}
