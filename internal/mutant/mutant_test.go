package mutant_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/mutant"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

// Every mutant applies to the current tree, and names existing tests.
func TestEveryMutantAppliesToTheTree(t *testing.T) {
	root := filepath.Join("..", "..")
	names := make(map[string]bool)
	for _, m := range mutant.All() {
		if names[m.Name] || m.Name == "" {
			t.Errorf("there are two mutants called %q", m.Name)
		}
		names[m.Name] = true
		if (len(m.Sim)+len(m.Chaos)+len(m.Tests) == 0) == (m.Equivalent == "") || m.Breaks == "" {
			t.Errorf("%s: it breaks %q, and nothing has to notice it, or it is equivalent and something has to", m.Name,
				m.Breaks)
		}
		changed, err := m.Apply(root)
		if err != nil || len(changed) == 0 {
			t.Errorf("%s changes %d files: %v; make the mistake anew in the present code", m.Name, len(changed), err)
		}
		for _, tests := range m.Tests {
			for _, name := range tests.Names {
				if !declared(t, filepath.Join(root, tests.Package), name) {
					t.Errorf("%s: there is no %s in %s", m.Name, name, tests.Package)
				}
			}
		}
	}
}

// declared reports whether a package declares a test.
func declared(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	must(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(t, err)
		if regexp.MustCompile(`(?m)^func ` + name + `\(`).Match(raw) {
			return true
		}
	}
	return false
}

// A mutant with a text that is missing, or appears twice, is an error that names the file and the text.
func TestAMutantThatDoesNotApplyIsAnError(t *testing.T) {
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600))
	for _, old := range []string{"three", "two"} {
		m := mutant.Mutant{Name: "m", Edits: []mutant.Edit{{"a.go", old, "four"}}}
		if _, err := m.Apply(root); err == nil || !strings.Contains(err.Error(), "a.go") ||
			!strings.Contains(err.Error(), old) {
			t.Errorf("%s: %v", old, err)
		}
	}
	two := mutant.Mutant{Name: "m", Edits: []mutant.Edit{{"a.go", "one", "three"}, {"a.go", "three two", "four"}}}
	if got, err := two.Apply(root); err != nil || got["a.go"] != "four two" {
		t.Errorf("two edits of a file: %q, %v", got, err)
	}
	gone := mutant.Mutant{Name: "m", Edits: []mutant.Edit{{"b.go", "one", "two"}}}
	if _, err := gone.Apply(root); !errors.Is(err, mutant.ErrNoSource) {
		t.Errorf("without the file: %v", err)
	}
}

// Without the go command, or outside the module's source, the error says so.
func TestWithoutSourceNoMutantIsBuilt(t *testing.T) {
	m := mutant.All()[0]
	build := func(t *testing.T, says string) {
		t.Helper()
		_, err := m.Build(context.Background(), t.TempDir(), ".")
		if !errors.Is(err, mutant.ErrNoSource) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want it to say %q", err, says)
		}
	}
	t.Run("elsewhere", func(t *testing.T) {
		t.Chdir(t.TempDir())
		build(t, "lies in no checkout")
	})
	t.Run("no go command", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		build(t, "executable file not found")
	})
}

// The page has a row for every mutant, and no other rows.
func TestThePageHasEveryMutant(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "evidence", "mutants.md"))
	must(t, err)
	rows := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*?) \\|").FindAllStringSubmatch(string(raw), -1) {
		rows[row[1]] = row[2]
	}
	for _, m := range mutant.All() {
		if rows[m.Name] != strings.ReplaceAll(m.Breaks, "|", `\|`) {
			t.Errorf("%s breaks %q, and the page says %q", m.Name, m.Breaks, rows[m.Name])
		}
		delete(rows, m.Name)
	}
	for name := range rows {
		t.Errorf("there is no mutant %s any more", name)
	}
}
