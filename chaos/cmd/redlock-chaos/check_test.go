package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const calmHistory = `{"at":1000000,"type":"acquire-call","client":0,"attempt":1,"key":"k","ttl":2000000000}
{"at":2000000,"type":"acquire-return","client":0,"attempt":1,"key":"k","outcome":"acquired","owner":"a","until":1900000000,"no_done":true}
{"at":9000000,"type":"release-call","client":0,"attempt":1}
{"at":9500000,"type":"release-return","client":0,"attempt":1,"outcome":"acquired"}
{"at":10000000,"type":"acquire-call","client":1,"attempt":2,"key":"k","ttl":2000000000}
{"at":11000000,"type":"acquire-return","client":1,"attempt":2,"key":"k","outcome":"acquired","owner":"b","until":1900000000,"no_done":true}
`

func TestCheckJudgesAHistory(t *testing.T) {
	// the first gives it back after the second has got it
	overlap := strings.ReplaceAll(calmHistory, "\"at\":9", "\"at\":90")
	few := []string{"-limit-enough", "2"}
	for name, tt := range map[string]struct {
		history string
		flags   []string
		status  int
		says    string
	}{
		"pass":             {calmHistory, few, 0, "PASS: 6 events, 2 acquisitions"},
		"as JSON":          {calmHistory, slices.Concat(few, []string{"-json"}), 0, `"verdict": "pass"`},
		"held twice":       {overlap, nil, 1, `overlap: "k" was held twice`},
		"outside":          {overlap, slices.Concat(few, []string{"-outside"}), 0, "allowed: overlap"},
		"nothing acquired": {"", nil, 3, "  ! too little happened: 0 acquisitions"},
		"two acquisitions": {calmHistory, nil, 3, "  ! too little happened: 2 acquisitions"},
		"no such field":    {`{"at":1,"tipe":"x"}`, nil, 2, "tipe"},
		"no such type":     {`{"at":1,"type":"acquired"}`, nil, 2, `unknown type "acquired"`},
		"a return of no call": {
			`{"at":1,"type":"acquire-return","attempt":7}`, nil, 2, "attempt 7, which has no acquire-call",
		},
		"a number given twice": {
			calmHistory + `{"at":5,"type":"acquire-call","attempt":1,"key":"k"}`, nil, 2, "a number of its own",
		},
		"no such flag": {calmHistory, []string{"-nonsense"}, 2, "nonsense"},
		"two files":    {calmHistory, []string{"other.jsonl"}, 2, "want one file"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "history.jsonl")
			must(t, os.WriteFile(file, []byte(tt.history), 0o600))
			status, stdout, stderr := execute(t.Context(), t, append(append([]string{"check"}, tt.flags...), file)...)
			if status != tt.status || !strings.Contains(stdout+stderr, tt.says) {
				t.Errorf("status %d, want %d and %q:\n%s%s", status, tt.status, tt.says, stdout, stderr)
			}
		})
	}
	if status, _, stderr := execute(t.Context(), t, "check", "nonsense.jsonl"); status != 2 ||
		!strings.Contains(stderr, "nonsense.jsonl") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
