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

// Verdict is what became of a mutant.
type Verdict string

// The verdicts. Everything but Caught and Equivalent is a failure.
const (
	// Caught: what has to notice it does, and finds nothing wrong with the library as it is.
	Caught Verdict = "caught"
	// Survived: it does not.
	Survived Verdict = "survived"
	// Unknown: it could not be tried. It could not be built, what has to notice it has not run to its end, or fails without the mutant.
	Unknown Verdict = "unknown"
	// Equivalent: it is said to be no mistake, and was not tried.
	Equivalent Verdict = "equivalent"
)

// Result says how it went with one mutant.
type Result struct {
	Name    string  `json:"name"`
	Group   string  `json:"group"`
	Breaks  string  `json:"breaks"`
	Verdict Verdict `json:"verdict"`
	// By is what has to notice it.
	By string `json:"by,omitempty"`
	// Seconds are those of the build and of what has to notice it, without the time for the library as it is.
	Seconds float64 `json:"seconds"`
	// Note is the evidence, or why it is not known, or why it is equivalent.
	Note string `json:"note,omitempty"`
}

// Failed reports that the mutant was neither caught nor is equivalent.
func (r Result) Failed() bool { return r.Verdict != Caught && r.Verdict != Equivalent }

// Checker tries mutants: builds each, and has what must notice it judge. That has to find nothing wrong with the library as it is, which is
// asked once for all mutants. It is safe for concurrent use.
type Checker struct {
	// Dir is where it builds.
	Dir string
	// Chaos runs a mutant on real masters, and the library as it is before; evidence is empty if nothing was found. nil: mutants that
	// nothing else notices are unknown.
	Chaos func(ctx context.Context, m Mutant, c Chaos) (evidence string, err error)

	mu     sync.Mutex
	wholes map[string]*whole
}

// whole is something done once, with the library as it is.
type whole struct {
	once    sync.Once
	program string
	err     error
}

// By is the cheapest of what has to notice the mutant: tests, or else a simulation, or else a run on real masters.
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

// String names the tests and their package.
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

// fits says whether the mutant can be made in the tree as it is.
func (c *Checker) fits(m Mutant) (map[string]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return m.Apply(root)
}

// onceWhole does something once, with the library as it is.
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

// chaos has a run on real masters judge.
func (c *Checker) chaos(ctx context.Context, m Mutant, s Chaos) (v Verdict, note string, took time.Duration, err error) {
	began := time.Now()
	note, err = c.Chaos(ctx, m, s)
	if err != nil || note == "" {
		return Survived, "nothing was found", time.Since(began), err
	}
	return Caught, note, time.Since(began), nil
}
