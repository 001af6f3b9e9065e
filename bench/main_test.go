package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInvalidFlagsAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown flag":          {"-nonsense"},
		"unknown scenario":      {"-scenario", "uncontended,nonsense"},
		"unknown subject":       {"-subjects", "zookeeper"},
		"argument":              {"uncontended"},
		"no masters":            {"-masters", "0"},
		"no repetition":         {"-repeat", "0"},
		"no time":               {"-duration", "0s"},
		"negative bound":        {"-bound", "-1s"},
		"workers not a number":  {"-workers", "many"},
		"no workers":            {"-workers", "1,0"},
		"negative rate":         {"-rate", "-5"},
		"no contenders":         {"-contenders", "0"},
		"no holds":              {"-holds", "0"},
		"no hold":               {"-hold", "0s"},
		"fewer addresses":       {"-addrs", "127.0.0.1:1", "-masters", "3"},
		"address without port":  {"-addrs", "localhost"},
		"address given twice":   {"-addrs", "127.0.0.1:1,127.0.0.1:1"},
		"scenario without time": {"-scenario", "contended", "-contend", "-1s"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), args, &stdout, &stderr); status == cli.OK {
				t.Errorf("exit status %d for %q", status, args)
			}
			if stderr.Len() == 0 || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q", stderr.String(), stdout.String())
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var stderr bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &stderr, &stderr); status != cli.OK {
		t.Errorf("exit status %d", status)
	}
	for _, s := range scenario.All() {
		if !strings.Contains(stderr.String(), s.Name) {
			t.Errorf("the help does not name %s", s.Name)
		}
	}
}

func TestDefaultsAreAllScenariosOnFiveMasters(t *testing.T) {
	c, err := parse(nil, &bytes.Buffer{})
	must(t, err)
	if len(c.scenarios) != len(scenario.All()) || c.Masters != 5 || c.Repeat != 3 || c.Duration != 3*time.Second ||
		c.ContendFor != 30*time.Second || c.Holds != 100_000 || c.Contenders != 32 || c.Hold != 2*time.Millisecond {
		t.Errorf("defaults: %+v", c)
	}
	c, err = parse([]string{"-addrs", "127.0.0.1:1, 127.0.0.1:2,127.0.0.1:3"}, &bytes.Buffer{})
	if err != nil || c.Masters != 3 || c.addrs[1] != "127.0.0.1:2" {
		t.Errorf("three addresses: %d masters at %q, %v", c.Masters, c.addrs, err)
	}
}

// Every scenario with every subject on real servers, each as short as it can be: the rows must be there and no lock may
// have been held by two.
func TestEverythingRunsOnRealServers(t *testing.T) {
	redistest.Need(t)
	var five []string
	for _, s := range scenario.All() {
		if s.Name != "sharded" {
			five = append(five, s.Name)
		}
	}
	runOnRealServers(t, "5", five...)
	runOnRealServers(t, "6", "sharded") // two groups of three
}

// leftOut is how the command says that it does not compare with a lock.
var leftOut = regexp.MustCompile(`.* is left out: .*`)

func runOnRealServers(t *testing.T, masters string, names ...string) {
	t.Helper()
	dir := t.TempDir()
	jsonFile, plots := filepath.Join(dir, "out.json"), filepath.Join(dir, "plots")
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{
		"-scenario", strings.Join(names, ","), "-masters", masters, "-duration", "50ms", "-repeat", "1",
		"-bound", "200ms", "-workers", "4", "-contenders", "4", "-contend", "300ms", "-holds", "200", "-subjects",
		"redlock,redsync,redsync-failfast,redsync-mutex,rueidis,goredis-fanout,redislock-single,etcd,postgres", "-json",
		jsonFile, "-plots", plots,
	}, &stdout, &stderr)
	if status != cli.OK {
		t.Fatalf("exit status %d\n%s", status, stderr.String())
	}
	if why := leftOut.FindString(stdout.String()); why != "" {
		redistest.NothingTested(t, why)
	}
	missing := make(map[string]bool)
	drawings := 0
	for _, name := range names {
		maps.Copy(missing, wanted(name))
		if drawn(name) {
			drawings += 2 // light and dark
		}
		if !strings.Contains(stdout.String(), "\n"+name+": ") {
			t.Errorf("no table of %s in\n%s", name, stdout.String())
		}
	}
	if files, err := os.ReadDir(plots); err != nil || len(files) < drawings {
		t.Errorf("%d plots, want %d, %v", len(files), drawings, err)
	}
	for _, r := range readRows(t, jsonFile) {
		row := r["scenario"].(string) + ", " + r["subject"].(string)
		if kind, there := r["kind"]; there {
			row += ", " + kind.(string)
		}
		if overlaps, there := r["overlaps"]; there && overlaps != 0.0 {
			t.Errorf("%s: %v overlaps", row, overlaps)
		}
		if lost, there := r["lost"]; there && lost != 0.0 {
			t.Errorf("%s: %v holds lost", row, lost)
		}
		delete(missing, row)
	}
	for row := range missing {
		t.Errorf("no row of %s", row)
	}
}

// drawn says whether there is anything to draw of a scenario.
func drawn(name string) bool {
	return slices.Contains([]string{
		"uncontended", "distinct", "stopped", "slow", "spread", "contended", "distant", "cohort",
	}, name)
}

// wanted are the rows of a scenario, by scenario and subject.
func wanted(question string) map[string]bool {
	rows := make(map[string]bool)
	majorities := []string{"redlock", "redsync", "redsync-failfast", "rueidis", "goredis-fanout"}
	switch question {
	case "sharded":
		majorities = nil
		rows["sharded, redlock, one group"], rows["sharded, redlock, two groups"] = true, true
	case "neighbour":
		majorities = nil
		for _, kind := range scenario.Crowds() {
			rows["neighbour, redlock, "+kind] = true
		}
	case "renewed":
		majorities = []string{"redlock"}
	case "cost":
		for _, k := range subject.Kinds()[1:] {
			rows["cost, redlock, "+k.Kind] = true
		}
	case "kinds":
		majorities = nil
		for _, k := range subject.Kinds() {
			rows["kinds, redlock, "+k.Kind] = true
		}
	case "cohort":
		for _, s := range append(majorities, "redsync-mutex", "redislock-single", "etcd", "postgres") {
			rows["cohort, "+s+", "+scenario.OneProcess], rows["cohort, "+s+", "+scenario.FourProcesses] = true, true
		}
		return rows
	case "uncontended", "cold", "distinct", "contended", "allocations":
		rows[question+", redislock-single"], rows[question+", etcd"], rows[question+", postgres"] = true, true, true
	case "stopped":
		rows["stopped, etcd, a follower"], rows["stopped, etcd, the leader"] = true, true
	}
	if _, err := exec.LookPath("redis-benchmark"); err == nil && question == "distinct" {
		rows["distinct, limit"] = true
	}
	for _, rival := range majorities {
		rows[question+", "+rival] = true
	}
	return rows
}

func readRows(t *testing.T, path string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var rows []map[string]any
	must(t, json.Unmarshal(text, &rows))
	return rows
}

// If a lock's servers are not installed, the bench leaves the lock out, says so, and runs everything else.
func TestALockWhoseServersAreMissingIsLeftOut(t *testing.T) {
	redistest.Start(t)
	path := t.TempDir() // redis-server alone
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		redistest.NothingTested(t, err)
	}
	must(t, os.Symlink(binary, filepath.Join(path, "redis-server")))
	t.Setenv("PATH", path)
	status, stdout, stderr := runOnce(t, "-subjects", "goredis-fanout,etcd")
	const says = "etcd is left out: etcd: not installed: it is not on PATH (Debian: apt-get install etcd-server)"
	if status != cli.OK || !strings.Contains(stdout, says) {
		t.Errorf("exit status %d\n%s\n%s", status, stdout, stderr)
	}
	if !strings.Contains(stdout, "goredis-fanout") {
		t.Errorf("nothing was measured:\n%s", stdout)
	}
}

// runOnce measures uncontended locks for a moment.
func runOnce(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, problem bytes.Buffer
	status = run(t.Context(),
		append([]string{"-scenario", "uncontended", "-duration", "50ms", "-repeat", "1"}, args...), &out, &problem)
	return status, out.String(), problem.String()
}

// cancelAt cancels when a text is written to it.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.text) {
		c.cancel()
	}
	return len(p), nil
}

func TestAnInterruptLeavesNoServerAndNoFile(t *testing.T) {
	redistest.Start(t)
	//nolint:usetesting // PostgreSQL's user can't reach what testing makes
	dir, err := os.MkdirTemp("", "redlock-bench-")
	must(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	must(t, os.Chmod(dir, 0o755))
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	// The first subject's line comes while all subjects' servers run.
	status := run(ctx,
		[]string{"-scenario", "uncontended", "-subjects", "goredis-fanout,etcd,postgres", "-duration", "50ms"}, &stdout,
		cancelAt{"uncontended, goredis-fanout", cancel})
	if status != cli.Failed || !strings.Contains(stdout.String(), "goredis-fanout") {
		t.Errorf("exit status %d; want that it failed and shows what there is:\n%s", status, &stdout)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

func TestServersAreStartedOnlyForSubjectsThatTakePart(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		here bool
		fact string
	}{
		"no scenario asks them": {[]string{"-scenario", "slow,spread,masters,kinds,renewed,sharded"}, true, ""},
		"masters elsewhere": {
			[]string{"-scenario", "uncontended", "-addrs", "127.0.0.1:1"}, false, "postgres is left out: its servers " +
				"would run here",
		},
	} {
		cfg, err := parse(c.args, &bytes.Buffer{})
		must(t, err)
		own, part, err := host(t.Context(), cfg, c.here)
		if err != nil || len(own.fleets) != 0 || len(part) != len(subject.All())-3 {
			t.Errorf("%s: %d fleets, %d subjects, %v", name, len(own.fleets), len(part), err)
		}
		if facts := strings.Join(own.facts, "\n"); !strings.Contains(facts, c.fact) || (c.fact == "") != (facts == "") {
			t.Errorf("%s: it says %q", name, facts)
		}
	}
}

func TestCheckFailsOnAMissingMeasurement(t *testing.T) {
	redistest.Start(t)
	// Without this library among the subjects there is no target to check.
	status, stdout, stderr := runOnce(t, "-check", "-subjects", "goredis-fanout")
	if status != cli.Failed || !strings.Contains(stdout, "not measured") || !strings.Contains(stderr, "target") {
		t.Errorf("exit status %d\n%s\n%s", status, stdout, stderr)
	}
}

func TestMeasurementsAreShownAfterAFailure(t *testing.T) {
	redistest.Start(t)
	path := filepath.Join(t.TempDir(), "no", "such", "directory")
	status, stdout, _ := runOnce(t, "-subjects", "goredis-fanout", "-json", path)
	if status != cli.Failed || !strings.Contains(stdout, "goredis-fanout") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
}
