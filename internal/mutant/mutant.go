// Package mutant has known-bad variants of the engine, as small changes of its source. The simulator, the chaos harness and
// the tests build a program in which one of them stands in place of the real thing ([Mutant.Build]), and must notice it: a
// proof that they would notice such a mistake if it were made. Programs that use the library know nothing of this.
//
// To add a mutant, add an entry to [All]. It takes the go command and a checkout of the module to build one.
package mutant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mutant is one mistake, and what has to notice it.
type Mutant struct {
	// Name is what commands and tests call it.
	Name string
	// Edits make the mistake.
	Edits []Edit
	// Sim are the simulations that must find it, Chaos the runs on real masters, Tests the tests that must fail.
	Sim   []Sim
	Chaos []Chaos
	Tests []Tests
}

// Edit is a change of one file: Old stands there exactly once, and becomes New.
type Edit struct {
	// File is its path in the module, with slashes.
	File     string
	Old, New string
}

// Sim is a search in the simulator: the profile of the schedules, and the oracle whose verdict counts.
type Sim struct {
	// Name is what the search is called; empty: as the mutant.
	Name            string
	Profile, Oracle string
	// First is the seed to begin with where it takes long from the first one.
	First uint64
}

// Chaos is a run on real masters of at most For.
type Chaos struct {
	Scenario, Oracle string
	For              time.Duration
}

// Tests are tests of one package which must fail.
type Tests struct {
	// Package is its directory in the module.
	Package string
	Names   []string
}

// ErrNoSource is matched by errors that say that a mutant can't be built here: there is no go command, or no checkout of
// the module.
var ErrNoSource = errors.New("mutant: building one takes the go command and a checkout of the module")

// Find returns the mutant of that name.
func Find(name string) (Mutant, error) {
	all := All()
	if i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Mutant{}, fmt.Errorf("mutant: there is none called %q", name)
}

// built is set by the linker, to the name of the mutant that the program was built with.
var built string

// Built returns the name of the mutant that this program was built with; empty: it has the engine as it is.
func Built() string { return built }

// Apply returns the changed text of each file, by its path in the module. root is the module's directory.
func (m Mutant) Apply(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range m.Edits {
		text, ok := changed[e.File]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("%w: mutant %s: %w", ErrNoSource, m.Name, err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 || e.Old == e.New {
			return nil, fmt.Errorf("mutant %s: %s has the text %d times, want once: %q", m.Name, e.File, n, e.Old)
		}
		changed[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return changed, nil
}
