package spec_test

import (
	"os"
	"strings"
	"testing"
)

// A specification that is as long as the engine would not be read. The rules for masters, holds, rounds and tokens are
// in two files; spec.go chooses the rule for a step.
func TestTheRulesStayShort(t *testing.T) {
	rules := lines(t, "masters.go") + lines(t, "holds.go")
	if rules > 400 || rules < 200 {
		t.Errorf("the rules have %d lines of code, and at most 400 are wanted", rules)
	}
	if rest := lines(t, "spec.go"); rest > 70 || rest < 35 {
		t.Errorf("spec.go has %d lines of code, and at most 70 are wanted", rest)
	}
}

// lines counts the lines of code of a file: not the empty ones, nor those with a comment alone.
func lines(t *testing.T, file string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
