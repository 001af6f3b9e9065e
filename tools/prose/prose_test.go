package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each rule finds its sentence, and plain sentences pass.
func TestEachRuleFlagsItsSentenceAndNoPlainSentence(t *testing.T) {
	hard := map[string]string{
		"noun-what": "What waits for several keys is in one queue at a time.",
		"pointer":   "The queue is that of the key in the way.",
		"person":    "The lock goes to nobody at all.",
		"archaic":   "The waiter asks once more after that.",
		"passive":   "A loss is told before the end.",
		"long":      strings.Repeat("word ", maxWords+1),
	}
	for name, text := range hard {
		if got := flagsOf(text); !slices.Contains(got, name) {
			t.Errorf("%q is flagged %v, want %s", text, got, name)
		}
	}
	if len(hard) != len(rules)+1 {
		t.Errorf("%d sentences for %d rules", len(hard), len(rules)+1)
	}
	plain := []string{
		"Every batch ends with PING.", "List each server once.", "Release returns ErrNotHeld when the lock is over.",
		"A master votes by its reply to the request.", "What is a quorum of four masters?",
	}
	for _, text := range plain {
		if got := flagsOf(text); got != nil {
			t.Errorf("%q is flagged %v", text, got)
		}
	}
}

func TestEachKindOfTextIsFoundWithItsPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "page.md", "# A heading that nobody counts\n\nOne sentence for a reader. Another one for the same "+
		"reader.\n\n```\nfenced text that nobody counts\n```\n| a cell with four words | - |\n")
	write(t, dir, "lib.go", "// Package lib does one thing well.\npackage lib\n\n// Open opens the thing for "+
		"you.\nfunc Open() {}\n\n// hidden is not shown by anything.\nfunc hidden() {}\n")
	write(t, dir, "lib_test.go", "package lib\n\n// A test says what it shows here.\n")
	found, err := read(dir, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range found {
		got = append(got, string(s.kind)+": "+s.text)
	}
	slices.Sort(got)
	want := []string{
		"other comments: hidden is not shown by anything.",
		"pages: Another one for the same reader.",
		"pages: One sentence for a reader.",
		"pages: a cell with four words",
		"public comments: Open opens the thing for you.",
		"public comments: Package lib does one thing well.",
		"tests: A test says what it shows here.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAShareAboveItsBoundFailsAndSoDoesTooLittleText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bounds.json")
	if err := os.WriteFile(file, []byte(`{"pages": 4, "public comments": 4, "other comments": 6, "tests": 6}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	fine := func() shares {
		return shares{pages: {1000, 40}, public: {1000, 40}, comments: {1000, 60}, tests: {1000, 60}}
	}
	if err := fine().within(file); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	flagged := fine()
	flagged[tests].flagged++
	if err := flagged.within(file); err == nil || !strings.Contains(err.Error(), "tests") {
		t.Errorf("one flag too many: %v", err)
	}
	empty := fine()
	*empty[pages] = share{}
	if err := empty.within(file); err == nil {
		t.Error("no page was read, and the check passed")
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
