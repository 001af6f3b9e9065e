package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHazard138TwoRunsInOneDirectoryAreNotMixed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"junit.xml", "calm-1/report.json", "calm-1/smaller/report.html", "calm-2/history.jsonl", "calm-2/notes.txt",
		"mine",
	} {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, nil, 0o600))
	}
	var said bytes.Buffer
	release, err := claim(dir, &said)
	if err != nil || !strings.Contains(said.String(), "4 files of earlier runs") {
		t.Fatalf("%v, %s", err, &said)
	}
	for name, want := range map[string]bool{
		"junit.xml": false, "calm-1": false, "calm-2": true, "calm-2/history.jsonl": false, "calm-2/notes.txt": true,
		"mine": true,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	status, _, stderr := execute(t.Context(), t, "run", "-scenario", "calm", "-backend", "embedded", "-dir", dir)
	if status != exitSetup || !strings.Contains(stderr, "in use by other runs") {
		t.Errorf("status %d: %s", status, stderr)
	}
	release()
	said.Reset()
	if release, err = claim(dir, &said); err != nil || said.Len() > 0 {
		t.Fatalf("%v, %s", err, &said)
	}
	release()
}
