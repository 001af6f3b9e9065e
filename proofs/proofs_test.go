// Package proofs_test keeps docs/evidence/proofs.md, proofs/check and the models together.
package proofs_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// searched are the models, variants and states of proofs/check, as "model name kind".
func searched(script string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^\t\t(\w+) +\| (-|\w+) +\| (refuted:|reached:)?`).
		FindAllStringSubmatch(script, -1) {
		found = append(found, strings.TrimRight(m[1]+" "+m[2]+" "+m[3], ": "))
	}
	slices.Sort(found)
	return found
}

// told returns the document's entries: a heading for each model, and a row for each variant or state.
func told(document string) []string {
	var found []string
	model := ""
	for line := range strings.Lines(document) {
		if m := regexp.MustCompile("^## .*`proofs/(\\w+)\\.pml`").FindStringSubmatch(line); m != nil {
			model = m[1]
			found = append(found, model+" -")
		} else if m := regexp.MustCompile("^\\| `([A-Z_]+)` \\| (refuted|reached) ").FindStringSubmatch(line); m !=
			nil {
			found = append(found, model+" "+m[1]+" "+m[2])
		}
	}
	slices.Sort(found)
	return found
}

// rules are a model's rules: its inlines with a capital letter.
func rules(model string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^inline ([A-Z]\w*)\(`).FindAllStringSubmatch(model, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return found
}

// mapped returns the rules of a model in the document's table, and the code of each, as "file function".
func mapped(document, model string) (names, places []string) {
	row := regexp.MustCompile("(?m)^\\| " + model + " \\| ([^|]*) \\| ([^|]*) \\|$")
	for _, m := range row.FindAllStringSubmatch(document, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[1], -1) {
			names = append(names, name[1])
		}
		for _, place := range regexp.MustCompile("`([\\w./]+)(?: (\\w+))?`").FindAllStringSubmatch(m[2], -1) {
			places = append(places, strings.TrimSpace(place[1]+" "+place[2]))
		}
	}
	slices.Sort(names)
	return names, places
}

// isThere reports whether a Go file has a function, or whether another file exists.
func isThere(place string) bool {
	path, name, _ := strings.Cut(place, " ")
	path = filepath.Join("..", path)
	if !strings.HasSuffix(path, ".go") {
		_, err := os.Stat(path)
		return err == nil && name == ""
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	return err == nil && slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == name
	})
}

func TestTheDocumentListsEveryCheck(t *testing.T) {
	checked, document := searched(read(t, "check")), told(read(t, "../docs/evidence/proofs.md"))
	if len(checked) < 20 || !slices.Equal(checked, document) {
		t.Errorf("proofs/check searches\n%s\nand docs/evidence/proofs.md lists\n%s", strings.Join(checked, "\n"),
			strings.Join(document, "\n"))
	}
	models, err := filepath.Glob("*.pml")
	if err != nil || len(models) == 0 {
		t.Fatalf("models: %q, %v", models, err)
	}
	for _, model := range models {
		if !slices.Contains(checked, strings.TrimSuffix(model, ".pml")+" -") {
			t.Errorf("proofs/check does not check %s", model)
		}
	}
}

func TestEveryVariantAndStateIsInItsModel(t *testing.T) {
	for _, line := range searched(read(t, "check")) {
		model, name, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, " ")
		if source := read(t, model+".pml"); name != "-" &&
			!regexp.MustCompile(`(?m)^#(if.*|define )\b`+name+`\b`).MatchString(source) {
			t.Errorf("%s.pml knows no %s", model, name)
		}
	}
}

func TestEveryRuleIsImplementedSomewhere(t *testing.T) {
	document := read(t, "../docs/evidence/proofs.md")
	models, _ := filepath.Glob("*.pml")
	for _, path := range models {
		model := strings.TrimSuffix(path, ".pml")
		names, places := mapped(document, model)
		if want := rules(read(t, path)); len(want) == 0 || !slices.Equal(names, want) {
			t.Errorf("docs/evidence/proofs.md maps the rules %q of %s, which has %q", names, path, want)
		}
		for _, place := range places {
			if !isThere(place) {
				t.Errorf("docs/evidence/proofs.md names %q, and there is no such thing", place)
			}
		}
	}
}

// The negative control.
func TestAMissingPlaceIsNoticed(t *testing.T) {
	for place, want := range map[string]bool{
		"quorum.go acquired": true, "quorum.go nothing": false, "nothing.go voteOf": false,
		"single/lua/acquire.lua": true, "single/lua/nothing.lua": false,
	} {
		if isThere(place) != want {
			t.Errorf("%s: %t, want %t", place, !want, want)
		}
	}
	if got := rules("inline Land(h, m) {\ninline pass(x) {\n"); !slices.Equal(got, []string{"Land"}) {
		t.Errorf("rules: %q", got)
	}
	names, places := mapped("| m | `A`, `B` | `x.go f`, `y.lua` |\n| n | `C` | `z.go g` |\n", "m")
	if !slices.Equal(names, []string{"A", "B"}) || !slices.Equal(places, []string{"x.go f", "y.lua"}) {
		t.Errorf("mapped: %q, %q", names, places)
	}
	document := "## Locks: `proofs/m.pml`\n| `A_B` | refuted | x |\n| `C` | reached | y |\n"
	if got, want := told(document), []string{"m -", "m A_B refuted", "m C reached"}; !slices.Equal(got, want) {
		t.Errorf("told: %q, want %q", got, want)
	}
	if got, want := searched("\t\tm | - | x\n\t\tm | A_B | refuted: y\n"),
		[]string{"m -", "m A_B refuted"}; !slices.Equal(got, want) {
		t.Errorf("searched: %q, want %q", got, want)
	}
}

// status changes one model in a copy of proofs/check and runs one search there.
func status(t *testing.T, old, changed string, env []string, args ...string) (int, string) {
	t.Helper()
	dir := t.TempDir()
	model := strings.Replace(read(t, "repair.pml"), old, changed, 1)
	for name, text := range map[string]string{"check": read(t, "check"), "repair.pml": model} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	cmd := exec.CommandContext(t.Context(), bash, append([]string{filepath.Join(dir, "check")}, args...)...)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+dir), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// proofs/check must let none of these pass.
func TestACheckThatProvesNothingFails(t *testing.T) {
	if _, err := exec.LookPath("spin"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("spin is not on PATH")
	}
	tests := []struct {
		name, old, changed string
		env, args          []string
		want               int
		says               string
	}{
		{name: "as it is", args: []string{"repair", "-"}, want: 0, says: "all is as it must be"},
		{
			name: "a model that does not hold", old: "#define may_forget() is_quiet()",
			changed: "#define may_forget() true", args: []string{"repair", "-"}, want: 1, says: "NOT HOLDS",
		},
		{
			name: "a variant that is not refuted", old: "#define is_unknown 0", changed: "#define is_unknown 1",
			args: []string{"repair", "COUNTS_UNANSWERED"}, want: 1, says: "NOT REFUTED",
		},
		{name: "a state that is not reached", old: "reached(LOST,", changed: "reached(LOST, false &&", args: []string{
			"repair", "LOST",
		}, want: 1, says: "NOT REACHED"},
		{
			name: "a search that is cut short", env: []string{"PROOFS_DEPTH=20"}, args: []string{"repair", "-"},
			want: 1,
			says: "UNKNOWN",
		},
		{
			name: "a model that does not compile", old: "init {", changed: "init (", args: []string{"repair", "-"},
			want: 1, says: "DOES NOT COMPILE",
		},
		{
			name: "no spin", env: []string{"PATH=" + onlyBasics(t)}, args: []string{"repair", "-"}, want: 2,
			says: "spin is not on PATH",
		},
		{
			name: "no compiler", env: []string{"CC=no-such-compiler"}, args: []string{"repair", "-"}, want: 2,
			says: "no C compiler",
		},
		{name: "an unknown model", args: []string{"nothing"}, want: 2, says: "usage"},
		{name: "a part of a model's name", args: []string{"repai."}, want: 2, says: "usage"},
		{name: "an unknown variant", args: []string{"repair", "REPAIRS_LOS"}, want: 2, says: "of repair there are: - " +
			"SETS_AT_ONCE"},
		{name: "a trace of what holds", args: []string{"-trace", "repair", "-"}, want: 2, says: "leaves no trace"},
		{
			name: "no searches at once", env: []string{"PROOFS_JOBS=0"}, args: []string{"repair", "-"}, want: 2,
			says: "PROOFS_JOBS",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, out := status(t, test.old, test.changed, test.env, test.args...)
			if got != test.want || !strings.Contains(out, test.says) {
				t.Errorf("status %d, want %d and %q:\n%s", got, test.want, test.says, out)
			}
		})
	}
}

// TestTheCheckIsFoundThroughLinks: a link to a link in another directory, the second one relative.
func TestTheCheckIsFoundThroughLinks(t *testing.T) {
	if _, err := exec.LookPath("spin"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("spin is not on PATH")
	}
	dir := t.TempDir()
	check, err := filepath.Abs("check")
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"links/first": check, "second": "links/first"} {
		link = filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(dir, "second"), "repair", "LOST")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "all is as it must be") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// onlyBasics returns a directory with the programs that the script needs before it looks for spin.
func onlyBasics(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"dirname", "sed", "grep", "cut", "uniq", "tr", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
