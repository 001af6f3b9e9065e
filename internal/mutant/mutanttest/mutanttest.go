// Package mutanttest is for tests that must fail, or must notice something, in a build with a mutant of the engine.
package mutanttest

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/mutant"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// places bounds how many mutants are built and run at the same time.
var places = make(chan struct{}, min(2, runtime.GOMAXPROCS(0)))

// MustFail builds and runs the tests of the package in the working directory with each mutant that names tests there.
// Each of these tests must fail. That takes minutes, so it is only for runs with time ([soak.On]). A test of package
// mutant tries a sample of all mutants, and `redlock-chaos mutants` tries all.
func MustFail(t *testing.T) {
	t.Helper()
	switch {
	case mutant.Built() != "":
		t.Skip("this is a build with a mutant itself")
	case !soak.On():
		t.Skip("with REDLOCK_SOAK=1; a sample is tried by TestTheSampleIsCaught, in internal/mutant")
	}
	here := directory(t)
	found := 0
	for _, m := range mutant.All() {
		i := slices.IndexFunc(m.Tests, func(s mutant.Tests) bool { return s.Package == here })
		if i < 0 {
			continue
		}
		found++
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			verdict, note, err := new(mutant.Checker).CheckTests(t.Context(), m, m.Tests[i], t.TempDir())
			if err != nil || verdict != mutant.Caught {
				t.Errorf("%s: %v, %s", verdict, err, note)
			}
		})
	}
	if found == 0 {
		t.Errorf("no mutant names tests in %q", here)
	}
}

// Within reports whether this test runs in a build with the mutant; then the test must show the mutant's effect.
// Otherwise Within runs the test in such a build and returns its output. The test fails if it fails there.
func Within(t *testing.T, name string) (out string, within bool) {
	t.Helper()
	if mutant.Built() == name {
		return "", true
	}
	m, err := mutant.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	out = run(t, m, strings.Join(parts, "/"))
	if verdict(out, t.Name()) != "PASS" {
		t.Fatalf("in a build with the mutant:\n%s", out)
	}
	return out, false
}

// run runs tests of the package in the working directory, in a build with a mutant, and returns their output.
func run(t *testing.T, m mutant.Mutant, tests string) string {
	t.Helper()
	places <- struct{}{}
	defer func() { <-places }()
	program, err := m.BuildTest(t.Context(), t.TempDir(), path.Join(mutant.Module, directory(t)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-test.v", "-test.count=1", "-test.timeout=5m", "-test.run", tests}
	if _, err := mutant.Execute(context.WithoutCancel(t.Context()), "", program, args, &out, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return out.String()
}

// verdict returns the result of a test in verbose output: PASS, FAIL or SKIP; empty if there is none.
func verdict(out, name string) string {
	m := regexp.MustCompile(`(?m)^ *--- (\w+): ` + regexp.QuoteMeta(name) + ` \(`).FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	return m[1]
}

// directory is the working directory, as a path in the module.
func directory(t *testing.T) string {
	t.Helper()
	root, err := mutant.Root()
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Rel(root, wd)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(here)
}
