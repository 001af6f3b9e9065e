package spec_test

import (
	"os"
	"strings"
	"testing"
)

// A specification that is as long as the engine would not be read.
func TestTheRulesStayShort(t *testing.T) {
	const most = 444
	lines := 0
	for _, file := range []string{"spec.go", "masters.go", "holds.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	if lines > most || lines < most/2 {
		t.Errorf("%d lines of code, and at most %d are wanted", lines, most)
	}
}
