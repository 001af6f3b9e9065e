package sim_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
)

// unmatched says which rows of the page name neither a count nor a test, and which counts and names stand alone.
func unmatched(page string, counts []string) (faults []string) {
	named := make(map[string]bool)
	for _, row := range regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`).FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(row[1], "---") || strings.HasPrefix(row[1], "what can happen") {
			continue
		}
		count := regexp.MustCompile("^runs: `(.*)`$").FindStringSubmatch(row[2])
		switch {
		case count != nil:
			named[count[1]] = true
		case !strings.HasPrefix(row[2], "`Test"):
			faults = append(faults, fmt.Sprintf("%q is neither counted nor tested", row[1]))
		}
	}
	for name := range named {
		if !slices.Contains(counts, name) {
			faults = append(faults, fmt.Sprintf("the page names %q, which nothing counts", name))
		}
	}
	for _, name := range counts {
		if !named[name] {
			faults = append(faults, fmt.Sprintf("the page does not name %q", name))
		}
	}
	return faults
}

// That the tests exist which the page names, a test of package docs says.
func TestEveryRowOfTheProtocolIsCountedOrTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/evidence/interleavings.md")
	must(t, err)
	counts := new(sim.Counts).Unseen()
	if len(counts) < 40 || len((&sim.Counts{Refused: 1}).Unseen()) != len(counts)-1 {
		t.Errorf("%d counts are unseen: a row that never happened counts as seen", len(counts))
	}
	for _, fault := range unmatched(string(page), counts) {
		t.Error(fault)
	}
}

// The control: a count too many on either side, and a row without one.
func TestARowThatShowsNothingIsNoticed(t *testing.T) {
	page := "## Acquire\n\n| what can happen | harm | answer | seen in |\n| --- | --- | --- | --- |\n" +
		"| One thing. | x | y | runs: `refused` |\n| Another. | x | y | `TestThat` |\n"
	if got := unmatched(page, []string{"refused"}); len(got) > 0 {
		t.Errorf("%q, and all match", got)
	}
	if got := unmatched(page+"| A third. | x | y |  |\n", []string{"split"}); len(got) != 3 {
		t.Errorf("%q, want the row, the name and the count that do not match", got)
	}
}
