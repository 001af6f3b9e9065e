package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// runLine finds the flags of a run in a workflow or a shell block, to the end of the line that YAML folds it into.
var runLine = regexp.MustCompile(`redlock-chaos"? run ((?:-[a-z][^\n]*\n?\s*)+)`)

// TestTheRunsInTheDocumentsHaveFlagsAndScenariosThatExist reads the workflows as YAML, and the flags as the command
// would.
func TestTheRunsInTheDocumentsHaveFlagsAndScenariosThatExist(t *testing.T) {
	runs := 0
	for _, name := range []string{"ci.md", "containers.md"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "evidence", name))
		must(t, err)
		for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```").FindAllStringSubmatch(string(raw), -1) {
			var workflow struct {
				Jobs map[string]struct {
					Steps []map[string]any `yaml:"steps"`
				} `yaml:"jobs"`
			}
			if err := yaml.Unmarshal([]byte(block[1]), &workflow); err != nil || len(workflow.Jobs["chaos"].Steps) < 5 {
				t.Errorf("%s: %v, %d steps", name, err, len(workflow.Jobs["chaos"].Steps))
			}
		}
		for _, m := range runLine.FindAllStringSubmatch(string(raw), -1) {
			runs++
			checkRun(t, strings.Fields(m[1]))
		}
		for _, m := range regexp.MustCompile(`scenario: \[(.*)\]`).FindAllStringSubmatch(string(raw), -1) {
			for scenario := range strings.SplitSeq(m[1], ", ") {
				checkScenario(t, scenario)
			}
		}
	}
	if runs < 4 {
		t.Errorf("found %d runs in the documents", runs)
	}
}

func checkRun(t *testing.T, flags []string) {
	t.Helper()
	var args []string
	for i, f := range flags {
		if f == "${{" || f == "}}" || strings.HasPrefix(f, "matrix.") || strings.HasPrefix(f, "github.") {
			continue // what the workflow fills in
		}
		args = append(args, f)
		if i+1 < len(flags) && flags[i+1] == "${{" {
			args = append(args, "1")
		} else if f == "-scenario" && i+1 < len(flags) {
			checkScenario(t, flags[i+1])
		}
	}
	// With -h the flags are parsed and nothing is run.
	if _, _, stderr := execute(t.Context(), t,
		append(append([]string{"run"}, args...), "-h")...); !strings.HasPrefix(stderr, "Usage of") {
		t.Errorf("redlock-chaos run %v: %s", args, strings.SplitN(stderr, "\n", 2)[0])
	}
}

func checkScenario(t *testing.T, name string) {
	t.Helper()
	if _, err := plan.FindScenario(name); err != nil {
		t.Error(err)
	}
}

// TestThePageOnTheHarnessSaysWhatThereIs: its plan can be read, and its table has every oracle.
func TestThePageOnTheHarnessSaysWhatThereIs(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "evidence", "chaos.md"))
	must(t, err)
	block := regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```").FindSubmatch(raw)
	if block == nil {
		t.Fatal("no plan")
	}
	if p, err := plan.Parse(block[1]); err != nil || len(p.Steps) != 3 || len(p.Conflicts()) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, name := range chaos.Oracles() {
		if !strings.Contains(string(raw), "\n| "+name+" | ") {
			t.Errorf("the table lacks %s", name)
		}
	}
}
