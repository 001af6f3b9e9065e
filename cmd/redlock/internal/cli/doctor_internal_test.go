package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/audit"
)

// Package audit is tested with real mistakes. This is about what the command makes of its findings.
func TestFindingsAreShownAndDecideTheStatus(t *testing.T) {
	f := fleetOf(t, 3, masterSet{at: []int{0, 1, 2}})
	for severity, want := range map[audit.Severity]struct{ status, strict int }{
		audit.Unsafe: {statusNo, statusNo},
		audit.Risk:   {statusOK, statusNo},
		audit.Note:   {statusOK, statusOK},
	} {
		report := &audit.Report{Masters: []audit.MasterReport{
			{Name: "a:1", RunID: "0123", Persistence: "none"},
			{Name: "b:1", Err: errors.New("dial redis://u:hush@b")},
			{Name: "c:1"},
		}}
		report.Add(
			audit.Finding{Severity: audit.Note, What: "There are 3.", Why: "Few.", Fix: "Add."},
			audit.Finding{Severity: severity, Master: "a:1", What: "No redis://u:hush@a.", Why: "So.", Fix: "Keep."},
			audit.Finding{Severity: severity, Master: "c:1", What: "No redis://u:hush@a.", Why: "So.", Fix: "Keep."},
		)
		for strict, status := range map[bool]int{false: want.status, true: want.strict} {
			if got := asStatus((&doctor{strict: strict}).verdict(report, f)).status; got != status {
				t.Errorf("%v, strict %t: status %d, want %d", severity, strict, got, status)
			}
		}
		var text strings.Builder
		writeAudit(&text, report, f)
		for _, part := range []string{
			"\n" + strings.ToUpper(severity.String()) + ": a:1, c:1\n    No redis://***@a.\n    Why: So.\n" +
				"    Fix: Keep.\n",
			"\nNOTE: the set of masters\n    There are 3.\n",
			"\nb:1     (no answer)\n",
		} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("no %q in\n%s", part, &text)
			}
		}
		raw, err := json.Marshal(auditJSON(report, f))
		for _, part := range []string{
			`"worst":"` + severity.String() + `"`,
			`{"severity":"` + severity.String() + `","master":"c:1","what":"No redis`,
			`{"severity":"note","what":"There are 3.","why":"Few.","fix":"Add."}`,
			`{"master":"a:1","run_id":"0123","uptime_seconds":0,"persistence":"none"`,
			`{"master":"b:1","error":"dial redis://***@b"`,
		} {
			if err != nil || !strings.Contains(string(raw), part) {
				t.Errorf("%v: no %s in\n%s", err, part, raw)
			}
		}
	}
}
