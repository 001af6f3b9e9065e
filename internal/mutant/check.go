package mutant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Verdict is the result for a mutant.
type Verdict string

// The verdicts. All except Caught and Equivalent are failures.
const (
	// Caught: the mutant's check notices it, and finds nothing wrong with the unchanged library.
	Caught Verdict = "caught"
	// Survived: the check does not notice it.
	Survived Verdict = "survived"
	// Unknown: the mutant could not be tried. It could not be built, or its check did not run to its end, or fails
	// without the mutant.
	Unknown Verdict = "unknown"
	// Equivalent: the mutant is declared to be no mistake, and was not tried.
	Equivalent Verdict = "equivalent"
)

// Result is the result for one mutant.
type Result struct {
	Name    string  `json:"name"`
	Group   string  `json:"group"`
	Breaks  string  `json:"breaks"`
	Verdict Verdict `json:"verdict"`
	// By is the check that must notice it.
	By string `json:"by,omitempty"`
	// Seconds is the time of the build and of the check, without the time for the unchanged library.
	Seconds float64 `json:"seconds"`
	// Note is the evidence, or the reason for Unknown or Equivalent.
	Note string `json:"note,omitempty"`
}

// Failed reports that the mutant was neither caught nor is equivalent.
func (r Result) Failed() bool { return r.Verdict != Caught && r.Verdict != Equivalent }

// Checker tries mutants: it builds each, and runs the check that must notice it. The check must find nothing wrong
// with the unchanged library; that is tested once for all mutants. A Checker is safe for concurrent use.
type Checker struct {
	// Dir is the directory for builds.
	Dir string
	// Chaos runs first the unchanged library and then a mutant on real masters; evidence is empty if nothing was
	// found. If Chaos is nil, mutants without another check are unknown.
	Chaos func(ctx context.Context, m Mutant, c Chaos) (evidence string, err error)

	mu     sync.Mutex
	wholes map[string]*whole
}

// whole is a step that is done once, with the unchanged library.
type whole struct {
	once    sync.Once
	program string
	err     error
}

// By is the cheapest check that must notice the mutant: tests, else a simulation, else a run on real masters.
func (m Mutant) By() string {
	switch {
	case m.Equivalent != "":
		return ""
	case len(m.Tests) > 0:
		return m.Tests[0].String()
	case len(m.Sim) > 0:
		return fmt.Sprintf("simulation %s, oracle %s", m.Sim[0].Profile, m.Sim[0].Oracle)
	case len(m.Chaos) > 0:
		return fmt.Sprintf("chaos %s, oracle %s", m.Chaos[0].Scenario, m.Chaos[0].Oracle)
	default:
		return ""
	}
}

// String returns the names of the tests and their package.
func (t Tests) String() string { return path.Join(t.Package, strings.Join(t.Names, " ")) }

// Check tries one mutant.
func (c *Checker) Check(ctx context.Context, m Mutant) Result {
	r := Result{Name: m.Name, Group: m.Group(), Breaks: m.Breaks, By: m.By(), Note: m.Equivalent, Verdict: Equivalent}
	if m.Equivalent != "" {
		if _, err := c.fits(m); err != nil {
			r.Verdict, r.Note = Unknown, err.Error()
		}
		return r
	}
	var took time.Duration
	var err error
	switch dir := filepath.Join(c.Dir, m.Name); {
	case len(m.Tests) > 0:
		r.Verdict, r.Note, took, err = c.tests(ctx, m, m.Tests[0], dir)
	case len(m.Sim) > 0:
		r.Verdict, r.Note, took, err = c.sim(ctx, m, m.Sim[0], dir)
	case len(m.Chaos) > 0 && c.Chaos != nil:
		r.Verdict, r.Note, took, err = c.chaos(ctx, m, m.Chaos[0])
	default:
		err = errors.New("nothing here has to notice it")
	}
	r.Seconds = took.Seconds()
	if err = cmp.Or(ctx.Err(), err); err != nil {
		r.Verdict, r.Note = Unknown, err.Error()
	}
	return r
}

// fits reports whether the mutant can be applied to the current tree.
func (c *Checker) fits(m Mutant) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return m.Apply(root)
}

// onceWhole does a step once, with the unchanged library.
func (c *Checker) onceWhole(what string, do func() (program string, err error)) (program string, err error) {
	c.mu.Lock()
	if c.wholes == nil {
		c.wholes = make(map[string]*whole)
	}
	w := c.wholes[what]
	if w == nil {
		w = new(whole)
		c.wholes[what] = w
	}
	c.mu.Unlock()
	w.once.Do(func() { w.program, w.err = do() })
	return w.program, w.err
}

// chaos judges by a run on real masters.
func (c *Checker) chaos(ctx context.Context, m Mutant, s Chaos) (v Verdict, note string, took time.Duration,
	err error,
) {
	began := time.Now()
	note, err = c.Chaos(ctx, m, s)
	if err != nil || note == "" {
		return Survived, "nothing was found", time.Since(began), err
	}
	return Caught, note, time.Since(began), nil
}
