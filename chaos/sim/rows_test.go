package sim_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
	"github.com/seed-624411e5/redlock/internal/testnames"
)

// unmatched says which rows of the document the list does not have, and the other way round.
func unmatched(document string, rows []sim.Row) (faults []string) {
	heading, cell := regexp.MustCompile(`^## (.+?)(?: — .*)?$`), regexp.MustCompile(`^\| (.+?) \| `)
	found, part := make([]int, len(rows)), ""
	for line := range strings.Lines(document) {
		line = strings.TrimSuffix(line, "\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			part = m[1]
		}
		m := cell.FindStringSubmatch(line)
		if len(m) < 2 || m[1] == "what can happen" || strings.HasPrefix(m[1], "---") {
			continue
		}
		known := 0
		for i, r := range rows {
			if r.Part == part && strings.HasPrefix(m[1], r.What) {
				found[i]++
				known++
			}
		}
		if known != 1 {
			faults = append(faults, fmt.Sprintf("%s: %q is in the list %d times", part, m[1], known))
		}
	}
	for i, n := range found {
		if n != 1 {
			faults = append(faults, fmt.Sprintf("%v is in the document %d times", &rows[i], n))
		}
	}
	return faults
}

// TestEveryRowOfTheProtocolIsCountedOrTested compares the list with docs/evidence/interleavings.md,
// and checks that the counters and tests in it exist.
func TestEveryRowOfTheProtocolIsCountedOrTested(t *testing.T) {
	raw, err := os.ReadFile("../../docs/evidence/interleavings.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := sim.Rows()
	for _, fault := range unmatched(string(raw), rows) {
		t.Error(fault)
	}
	exists, names := testnames.Under(t, "../.."), countNames()
	for _, r := range rows {
		if (r.Count == "") == (len(r.Tests) == 0) || r.Count != "" && !names[r.Count] {
			t.Errorf("%v is neither counted nor tested, or both", &r)
		}
		for _, name := range r.Tests {
			if !exists[name] {
				t.Errorf("%v: there is no %s", &r, name)
			}
		}
	}
	t.Logf("%d rows", len(rows))
}

// The control: a row too many on either side.
func TestARowThatIsNotInTheListIsNoticed(t *testing.T) {
	document := "## Acquire — `x.go`\n\n| what can happen | x | y |\n| --- | --- | --- |\n| One thing. | x | y |\n| " +
		"Another thing. | x | y |\n"
	rows := []sim.Row{
		{Part: "Acquire", What: "One thing", Count: "refused"}, {
			Part: "Extend", What: "Another thing", Count: "refused",
		},
	}
	if got := unmatched(document, rows); len(got) != 2 {
		t.Errorf("%q, want the row and the entry that do not match", got)
	}
	rows[1].Part = "Acquire"
	if got := unmatched(document, rows); len(got) > 0 {
		t.Errorf("%q, and all match", got)
	}
	if len(sim.Unseen(new(sim.Counts))) < 40 ||
		len(sim.Unseen(&sim.Counts{Refused: 1})) != len(sim.Unseen(new(sim.Counts)))-1 {
		t.Error("a row that never happened counts as seen")
	}
}

func countNames() map[string]bool {
	names := make(map[string]bool)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[sim.Counts]()) {
		names[f.Tag.Get("json")] = true
	}
	return names
}
