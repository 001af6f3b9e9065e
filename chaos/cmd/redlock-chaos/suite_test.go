package main

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// TestSuitesAreOneFileAndOneTable has a lock that passes one scenario, is convicted in one, and has no locks for the
// third.
func TestSuitesAreOneFileAndOneTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := filepath.Join(dir, "summary.md")
	status, stdout, stderr := execute(t.Context(), t, "run", "-backend", "embedded", "-quiet", "-dir", dir, "-ttl",
		"10s", "-subject", "quorum-of-one",
		"-scenario", "shared,bridge", "-seeds", "3..4", "-duration", "4s", "-markdown", table, "-failfast")
	if status != 1 {
		t.Fatalf("status %d: %s%s", status, stdout, stderr)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	must(t, err)
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
		} `xml:"testcase"`
	}
	must(t, xml.Unmarshal(raw, &got))
	// Two runs that were skipped, and one with a verdict and all oracles; the other seed was not run, or was violated.
	one := 2 + 1 + len(chaos.Oracles())
	if (got.Tests != one+1 || got.Skipped != 3) && (got.Tests != one+1+len(chaos.Oracles()) || got.Skipped != 2) ||
		got.Failures < 2 {
		t.Errorf("%+v", got)
	}
	overlap := false
	for _, c := range got.Cases {
		rest, ofTheBridge := strings.CutPrefix(c.Name, "bridge/seed-")
		seed, ofOverlaps := strings.CutSuffix(rest, "/overlap")
		if !ofTheBridge || !ofOverlaps || c.Failure == nil {
			continue
		}
		overlap = true
		// The history that the run has recorded shows the same.
		status, again, stderr := execute(t.Context(), t, "check", filepath.Join(dir, "bridge-"+seed, "history.jsonl"))
		if status != 1 || !strings.Contains(again, "was held twice") {
			t.Errorf("check of seed %s: status %d: %s%s", seed, status, again, stderr)
		}
	}
	if !overlap {
		t.Errorf("no case for the overlap: %+v", got.Cases)
	}
	summary, err := os.ReadFile(table)
	if err != nil || !strings.Contains(string(summary), "| shared | 3 | skipped |") ||
		!strings.Contains(string(summary), "| violation |") || !strings.Contains(string(summary), "-scenario bridge") {
		t.Errorf("%s, %v", summary, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "bridge-3", "report.html")); err != nil {
		t.Error(err)
	}
}

func TestASuiteMayBeOfAllScenarios(t *testing.T) {
	s, of := suite{parallel: 1, repeat: 1}, suite{parallel: 1, repeat: 1}
	if err := s.draw("all", "1..2", 0); err != nil || len(s.scenarios) != len(plan.Scenarios()) || len(s.seeds) != 2 {
		t.Errorf("%v, %v, %v", s.scenarios, s.seeds, err)
	}
	if err := of.draw("calm,all", "", 1); err == nil {
		t.Error("all is one of two names")
	}
}

func TestASuiteOfNothingIsNoPass(t *testing.T) {
	for says, args := range map[string][]string{
		"nothing was shown": {
			"-subject", "quorum-of-two", "-scenario",
			"shared,reentrant,renewal,lost-packets,rolling-restart,stopped-writers",
		},
		"no scenario":     {"-scenario", "calm,nonsense"},
		"want a number":   {"-scenario", "calm", "-seeds", "5..2"},
		"a range such as": {"-scenario", "calm", "-seeds", "many"},
		"single run":      {"-scenario", "calm,bridge", "-json", "x.json"},
		"at least 1":      {"-scenario", "calm", "-repeat", "0"},
		"-parallel 1":     {"-backend", "external", "-addrs", "127.0.0.1:1", "-parallel", "2"},
	} {
		status, stdout, stderr := execute(t.Context(), t,
			append([]string{"run", "-backend", "embedded", "-quiet", "-dir", t.TempDir()}, args...)...)
		if status == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%v: status %d, %s%s", args, status, stdout, stderr)
		}
	}
}

// The worst status of several runs counts. A run that can't write its files, and a run that is interrupted, do not keep
// the other results out of the report.
func TestHazard134AViolationIsNotLostByWhatComesAfterIt(t *testing.T) {
	for _, order := range [][3]int{
		{exitViolation, exitSetup, exitViolation},
		{exitSetup, exitViolation, exitViolation},
		{exitUnknown, exitSetup, exitSetup},
		{exitPass, exitUnknown, exitUnknown},
	} {
		if got := worse(order[0], order[1]); got != order[2] {
			t.Errorf("after %d, %d: %d", order[0], order[1], got)
		}
	}
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "calm-2"), nil, 0o600); err != nil { // where a directory has to be
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, seed := range []string{"2", "3"} {
		want := map[string]string{"2": "/setup", "3": "not run: context canceled"}[seed]
		if seed == "3" {
			cancel()
		}
		status, stdout, stderr := execute(ctx, t, "run", "-backend", "embedded", "-quiet", "-dir", dir, "-ttl", "10s",
			"-scenario", "calm,bridge", "-seeds", seed, "-duration", "300ms")
		raw, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
		if status == exitPass || err != nil || !strings.Contains(string(raw), want) ||
			!strings.Contains(string(raw), "bridge/seed-"+seed) {
			t.Errorf("status %d, %v: %s%s%s", status, err, stdout, stderr, raw)
		}
	}
	cancel()
}

// The releases of this lock fail. Two seeds run twice each, and every violating plan is shrunk.
func TestRunsAreRepeatedAndMadeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status, stdout, stderr := execute(t.Context(), t, "run", "-backend", "embedded", "-dir", dir, "-ttl", "10s",
		"-subject", "release-errors", "-scenario", "calm", "-seeds", "1..2", "-repeat", "2", "-parallel", "2",
		"-shrink", "1", "-duration", "4s")
	shrunk := strings.Count(stdout, "convicted with 0 of 0 steps in ") + strings.Count(stdout, "no smaller plan")
	if status == exitPass || strings.Count(stdout, "VIOLATION") != shrunk {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	for _, run := range []string{"calm-1-1", "calm-1-2", "calm-2-1", "calm-2-2"} {
		if _, err := os.Stat(filepath.Join(dir, run, "report.html")); err != nil {
			t.Error(err)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "junit.xml")); err != nil ||
		strings.Count(string(raw), "/verdict") != 4 {
		t.Errorf("%s, %v", raw, err)
	}
}
