// Package mutant has known-bad variants of the engine, as small changes of its source. The simulator, the chaos harness and
// the tests build a program in which one of them stands in place of the real thing ([Mutant.Build]), and must notice it: a
// proof that they would notice such a mistake if it were made. Programs that use the library know nothing of this.
//
// [Checker] tells of each mutant whether what has to notice it does. To add a mutant, add an entry to [All]. It takes the go command and a checkout of the module to build one.
package mutant

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mutant is one mistake, and what has to notice it.
type Mutant struct {
	// Name is what commands and tests call it.
	Name string
	// Breaks says in a sentence what goes on in a build with it.
	Breaks string
	// Edits make the mistake.
	Edits []Edit
	// Sim are the simulations that must find it, Chaos the runs on real masters, Tests the tests that must fail.
	Sim   []Sim
	Chaos []Chaos
	Tests []Tests
	// Sample: it is one of the few that the tests of every run are tried on ([Mutant.Group] has one or two of them).
	Sample bool
	// Equivalent is why nothing can notice it, for a change that is no mistake; empty: it is one.
	Equivalent string
}

// Group is the part of the library that the mutant changes: "engine" of the root package, "scripts" of what runs on masters,
// otherwise the package's path.
func (m Mutant) Group() string {
	switch dir := path.Dir(m.Edits[0].File); dir {
	case ".":
		return "engine"
	case "single/lua":
		return "scripts"
	default:
		return strings.TrimPrefix(dir, "internal/")
	}
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
	// Crash is what a build that ends by a panic or by the tests' timeout has to say, where that is how the mutant shows. Empty: then
	// nothing is known of it.
	Crash string
	// Within is when the tests' timeout ends them, where Crash is that they do not end. Default: two minutes.
	Within time.Duration
}

// in names tests of a package that must fail.
func in(pkg string, names ...string) []Tests { return []Tests{{Package: pkg, Names: names}} }

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
