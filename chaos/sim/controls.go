package sim

import (
	"context"
	"fmt"
	"io"
	"slices"

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
			c.Profile, _ = findProfile(s.Profile) // a test checks every seed
			out = append(out, c)
		}
	}
	return append(
		out,
		Control{"plain-delete", BrokenVariants{PlainDelete: true}, Within(), []string{oracle.NameForeignRelease}, 1},
		Control{"full-denies", BrokenVariants{FullDenies: true}, Fullness(), []string{oracle.NameKept}, 1},
		Control{"no-guard", BrokenVariants{NoGuard: true}, Within(), []string{oracle.NameOverlap}, 1},
		Control{"no-guard-after-rollback", BrokenVariants{NoGuard: true}, rollbacks(), []string{oracle.NameOverlap}, 1},
		Control{"no-wait", BrokenVariants{NoWait: true}, Membership(), []string{oracle.NameOverlap}, 1},
		Control{
			"no-wait-after-announcement",
			BrokenVariants{NoWait: true},
			Generations(),
			[]string{oracle.NameOverlap},
			1,
		},
		Control{"not-announced", BrokenVariants{NotAnnounced: true}, Generations(), []string{oracle.NameOverlap}, 1},
	)
}

func findProfile(name string) (Profile, bool) {
	profiles := Profiles()
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
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
