package mutant_test

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/mutant"
	"github.com/seed-624411e5/redlock/internal/soak"
)

const control = "internal/mutant/testdata/control"

// wrong is a mutant of the control, with the check that must notice it.
func wrong(name string, t mutant.Tests) mutant.Mutant {
	t.Package = control
	return mutant.Mutant{
		Name: name, Breaks: "the answer is another one", Tests: []mutant.Tests{t},
		Edits: []mutant.Edit{{File: control + "/control.go", Old: "return 42", New: "return 41"}},
	}
}

// A mutant is caught only if the very test that must notice it fails.
func TestOnlyTheTestThatMustFailCatchesAMutant(t *testing.T) {
	t.Parallel()
	c := &mutant.Checker{Dir: t.TempDir()}
	with := func(m mutant.Mutant, change func(*mutant.Mutant)) mutant.Mutant { change(&m); return m }
	for name, tt := range map[string]struct {
		m       mutant.Mutant
		verdict mutant.Verdict
		says    string
	}{
		"caught": {
			wrong("a", mutant.Tests{Names: []string{"TestLooks"}}), mutant.Caught, "the answer is 41",
		},
		"nothing notices it": {
			wrong("b", mutant.Tests{Names: []string{"TestLooksAway"}}), mutant.Survived, "TestLooksAway passes",
		},
		"one of two does": {
			wrong("c", mutant.Tests{Names: []string{"TestLooks", "TestLooksAway"}}), mutant.Survived, "TestLooksAway " +
				"passes",
		},
		"red without it": {
			wrong("d", mutant.Tests{Names: []string{"TestIsRed"}}), mutant.Unknown, "without the mutant TestIsRed " +
				"does not pass",
		},
		"no such test": {
			wrong("e", mutant.Tests{Names: []string{"TestNone"}}), mutant.Unknown, "without the mutant TestNone does " +
				"not pass (no end",
		},
		"skipped": {
			wrong("f", mutant.Tests{Names: []string{"TestIsSkipped"}}), mutant.Unknown, "has not run to its end (SKIP)",
		},
		"a panic": {
			wrong("g", mutant.Tests{Names: []string{"TestPanics"}}), mutant.Unknown, "status 2",
		},
		"a panic that is expected": {
			wrong("h", mutant.Tests{Names: []string{"TestPanics"}, Crash: "the answer is another one"}), mutant.Caught,
			"another one",
		},
		"another panic": {
			wrong("i", mutant.Tests{Names: []string{"TestPanics"}, Crash: "test timed out"}), mutant.Unknown,
			"status 2",
		},
		"it hangs": {
			wrong("j", mutant.Tests{Names: []string{"TestHangs"}, Within: time.Second}), mutant.Unknown, "status 2",
		},
		"it hangs as expected": {
			wrong("k", mutant.Tests{Names: []string{"TestHangs"}, Within: time.Second, Crash: "test timed out"}),
			mutant.Caught, "timed out",
		},
		"it can't be built": {with(wrong("l", mutant.Tests{Names: []string{"TestLooks"}}), func(m *mutant.Mutant) {
			m.Edits[0].New = "return what"
		}), mutant.Unknown, "undefined: what"},
		"its text has gone": {with(wrong("m", mutant.Tests{Names: []string{"TestLooks"}}), func(m *mutant.Mutant) {
			m.Edits[0].Old = "return 43"
		}), mutant.Unknown, control + `/control.go has the text 0 times, want once: "return 43"`},
		"nothing is named": {
			with(wrong("n", mutant.Tests{}), func(m *mutant.Mutant) { m.Tests = nil }), mutant.Unknown,
			"nothing here has to notice it",
		},
		"equivalent": {
			with(wrong("o", mutant.Tests{}), func(m *mutant.Mutant) { m.Equivalent = "nobody asks" }),
			mutant.Equivalent, "nobody asks",
		},
		"equivalent to what": {with(wrong("p", mutant.Tests{}), func(m *mutant.Mutant) {
			m.Equivalent, m.Edits[0].Old = "nobody asks", "return 43"
		}), mutant.Unknown, `"return 43"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.Check(t.Context(), tt.m)
			if r.Verdict != tt.verdict || !strings.Contains(r.Note, tt.says) ||
				r.Failed() != (tt.verdict != mutant.Caught && tt.verdict != mutant.Equivalent) {
				t.Errorf("%s, failed %t: %s; want %s and %q", r.Verdict, r.Failed(), r.Note, tt.verdict, tt.says)
			}
		})
	}
}

// With enough time a sample is checked: at least one mutant of each part of the library that has mutants. Otherwise it
// is one mutant of a small package, which shows that mutants of the library can be built. Every night all are checked.
func TestTheSampleIsCaught(t *testing.T) {
	t.Parallel()
	c := &mutant.Checker{Dir: t.TempDir()}
	places := make(chan struct{}, min(2, runtime.GOMAXPROCS(0)))
	var groups []string
	var tried int
	var all sync.WaitGroup
	for _, m := range mutant.All() {
		if !m.Sample {
			continue
		}
		first := !slices.Contains(groups, m.Group())
		groups = append(groups, m.Group())
		if !soak.On() && (!first || m.Group() != "lane") {
			continue
		}
		tried++
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if r := c.Check(t.Context(), m); r.Verdict != mutant.Caught {
				t.Errorf("%s, %s: %s", r.Name, r.Verdict, r.Note)
			}
		})
	}
	all.Wait()
	if tried == 0 {
		t.Error("no mutant was tried")
	}
	for _, m := range mutant.All() {
		if !slices.Contains(groups, m.Group()) {
			t.Errorf("no mutant of %s is in the sample", m.Group())
		}
	}
}
