// Package mutant has known-bad variants of the engine, as small changes of its source. The simulator, the chaos
// harness and the tests build a program with such a change ([Mutant.Build]), and must notice it. That proves that
// they would notice the same mistake if a person made it. Programs that use the library do not contain this package.
//
// [Checker] says for each mutant whether its check notices it. To add a mutant, add a file to patches/. Building one
// takes the go command and a checkout of the module.
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

// Mutant is one mistake, and the checks that must notice it.
type Mutant struct {
	// Name is the mutant's name in commands and tests.
	Name string
	// Breaks says in a sentence what a build with the mutant does wrong.
	Breaks string
	// Edits make the mistake.
	Edits []Edit
	// Sim are the simulations that must find it, Chaos the runs on real masters, Tests the tests that must fail.
	Sim   []Sim
	Chaos []Chaos
	Tests []Tests
	// Sample: the tests of every run check this mutant; each [Mutant.Group] has one or two samples.
	Sample bool
	// Equivalent says why no check can notice the change, because it is not a mistake; empty if it is one.
	Equivalent string

	unread string // why its patch can't be read
}

// Group is the part of the library that the mutant changes: "engine" for the root package, "scripts" for the scripts
// that run on masters, otherwise the package's path.
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

// Edit is a change of one file. The file must contain Old exactly once; New replaces it.
type Edit struct {
	// File is its path in the module, with slashes.
	File     string
	Old, New string
}

// Sim is a search in the simulator: the profile of the schedules, and the oracle that must find something.
type Sim struct {
	// Name is the name of the search; empty: the mutant's name.
	Name            string
	Profile, Oracle string
	// First is the first seed, for searches that take long from seed 1.
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
	// Crash is a text that the output must contain, if the mutant makes the build panic or run into the tests'
	// timeout. If it is empty, such an end proves nothing.
	Crash string
	// Within is the tests' timeout, for a Crash that is a timeout. Default: two minutes.
	Within time.Duration
}

// ErrNoSource matches errors that say that no mutant can be built here: the go command or a checkout of the module is
// missing.
var ErrNoSource = errors.New("mutant: building one takes the go command and a checkout of the module")

// Find returns the mutant with that name.
func Find(name string) (Mutant, error) {
	all := All()
	if i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Mutant{}, fmt.Errorf("mutant: there is none called %q", name)
}

// built is the name of the mutant that the program was built with. The linker sets it.
var built string

// Built returns the name of the mutant that this program was built with; empty if it was built without one.
func Built() string { return built }

// Apply returns the changed text of each file, by its path in the module. root is the module's directory.
func (m Mutant) Apply(root string) (map[string]string, error) {
	if m.unread != "" {
		return nil, errors.New(m.unread)
	}
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
