package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

// defect describes the mistake of a broken lock; it is empty if the lock has only a name.
func defect(c chaos.Control) string {
	if m, err := mutant.Find(c.Mutant); c.Mutant != "" && err == nil {
		return ": " + strings.TrimSuffix(m.Breaks, ".")
	}
	if e, err := controls.FindEntry(c.Subject.Name()); err == nil {
		return ": " + strings.TrimSuffix(e.Text, ".")
	}
	return ""
}

// bugs is the table of docs/evidence/bugs.md: for each scenario the broken locks that it must convict.
func bugs(all []chaos.Control) string {
	var rows strings.Builder
	for _, s := range plan.Scenarios() {
		var found []string
		for _, c := range all {
			if c.Scenario == s.Name {
				found = append(found, fmt.Sprintf("%#q (%s)%s", c.Subject.Name(), c.Oracle, defect(c)))
			}
		}
		if len(found) > 0 {
			fmt.Fprintf(&rows, "| %s | %s |\n", s.Name, strings.ReplaceAll(strings.Join(found, "<br>"), "|", "\\|"))
		}
	}
	return rows.String()
}

func TestThePageOfBugsNamesEveryBrokenLock(t *testing.T) {
	page, err := os.ReadFile("../../../docs/evidence/bugs.md")
	must(t, err)
	all := chaos.Controls()
	want := bugs(all)
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/evidence/bugs.md does not have this table:\n%s", want)
	}
	if n := strings.Count(want, "`"); n != 2*len(all) {
		t.Errorf("the table names %d broken locks of %d", n/2, len(all))
	}
}
