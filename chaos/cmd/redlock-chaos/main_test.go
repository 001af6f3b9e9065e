package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/internal/toxileak"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	workload.Main(chaos.Subjects()...)
	zerolog.SetGlobalLevel(zerolog.Disabled)
	logging.Disable()   // clients meet broken connections by the hundred
	redistest.AtOnce(4) // runs mostly wait
	goleak.VerifyTestMain(m, toxileak.Known()...)
}

// execute runs the command with its files in a directory of the test's own.
func execute(ctx context.Context, t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = dispatch(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

// tooLittle matches the output of a command that reached no verdict because this machine gave it too little time.
var tooLittle = regexp.MustCompile("! the machine stood still|! availability: judged|gave it too little time|" +
	"(?s:! too little happened.*note: the machine stood still)")

// stoodStill reports that a run, or the unbroken library on a control's seed, has no verdict because the machine gave
// it too little time.
func stoodStill(status int, out string) bool {
	return status == exitUnknown && tooLittle.MatchString(out)
}

// patiently is execute for tests that need a verdict. It executes a run again, at most three times,
// if the machine gave it too little time. It never repeats a run that has a verdict.
func patiently(ctx context.Context, t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	for range 4 {
		if status, stdout, stderr = execute(ctx, t, args...); !stoodStill(status, stdout) {
			return status, stdout, stderr
		}
		t.Logf("status %d: %s", status, stdout)
	}
	redistest.NothingTested(t, "in each of four runs the machine stood still for too long")
	return 0, "", ""
}

// TestTheExitStatusTellsTheVerdict, and so does the JSON file, in a directory that there was not.
func TestTheExitStatusTellsTheVerdict(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "calm.yaml")
	if err := os.WriteFile(file, []byte("name: ours\ninside: true\nworkload: hot-key\nduration: 2s\n"), 0o600); err !=
		nil {
		t.Fatal(err)
	}
	common := []string{"run", "-backend", "embedded", "-quiet", "-ttl", "10s"}
	for name, tt := range map[string]struct {
		within time.Duration
		args   []string
		status int
		says   string
	}{
		"pass": {time.Minute, []string{"-file", file}, 0, "PASS"},
		"violation": {
			time.Minute,
			[]string{"-subject", "release-does-nothing", "-scenario", "calm", "-duration", "2s"},
			1, "VIOLATION",
		},
		"cut short": {
			1500 * time.Millisecond, []string{"-scenario", "calm", "-duration", "1m"}, 3, "UNKNOWN",
		},
		"no such backend":  {time.Minute, []string{"-backend", "nonsense"}, 4, "no backend"},
		"no such subject":  {time.Minute, []string{"-subject", "nonsense"}, 4, "no subject"},
		"no such scenario": {time.Minute, []string{"-scenario", "nonsense"}, 2, "no scenario"},
		"no such file":     {time.Minute, []string{"-file", "nonsense.yaml"}, 4, "nonsense.yaml"},
		"a plan that is to last longer": {
			time.Minute, []string{"-file", file, "-duration", "1s"}, 2, "-duration 1s together with -file " + file,
		},
		"a plan and a scenario": {
			time.Minute, []string{"-file", file, "-scenario", "calm"}, 2, "-scenario calm together with -file " + file,
		},
		"a plan's default is no mistake": {
			time.Minute, []string{"-file", file, "-subject", "redlock"}, 0, "-backend embedded -file ",
		},
		"no such flag": {time.Minute, []string{"-nonsense"}, 2, "nonsense"},
		"an argument":  {time.Minute, []string{"nonsense"}, 2, "nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), tt.within)
			defer cancel()
			again := patiently
			if tt.status == exitUnknown { // the test waits for this verdict
				again = execute
			}
			dir := t.TempDir()
			jsonFile := filepath.Join(dir, "new", "out.json")
			status, stdout, stderr := again(ctx, t, slices.Concat(common, []string{"-dir", dir, "-json", jsonFile},
				tt.args)...)
			if status != tt.status || !strings.Contains(stdout+stderr, tt.says) {
				t.Errorf("status %d, want %d\n%s%s", status, tt.status, stdout, stderr)
			}
			verdicts := map[int]string{exitPass: "pass", exitViolation: "violation", exitUnknown: "unknown"}
			want, judged := verdicts[tt.status]
			var got struct{ Verdict, Scenario string }
			raw, err := os.ReadFile(jsonFile)
			if judged && (err != nil || json.Unmarshal(raw, &got) != nil || got.Verdict != want || got.Scenario == "") {
				t.Errorf("the file has %+v, %v", got, err)
			}
		})
	}
}

// TestReplayLinesReproduceAllFlags: the replay line contains the given flags, and the run of that
// line prints the same line again.
func TestReplayLinesReproduceAllFlags(t *testing.T) {
	t.Parallel()
	args := []string{
		"run", "-backend", "embedded", "-quiet", "-aof", "-destructive", "-ttl", "9s", "-masters", "3", "-clients", "2",
		"-scenario", "calm", "-duration", "700ms", "-seed", "11", "-binary", "/a place/redis",
	}
	replay := func(args []string) string {
		_, stdout, stderr := execute(t.Context(), t, append(args, "-dir", t.TempDir())...)
		_, line, ok := strings.Cut(stdout, "\n  replay: ")
		if !ok {
			t.Fatalf("no replay line: %s%s", stdout, stderr)
		}
		return strings.TrimSpace(line)
	}
	line := replay(args)
	for _, flag := range []string{
		"-aof", "-destructive", "-ttl 9s", "-masters 3", "-clients 2", "-scenario calm", "-duration 700ms", "-seed 11",
		"-binary '/a place/redis'", "-backend embedded", "-subject redlock",
	} {
		if !strings.Contains(line+" ", flag+" ") {
			t.Errorf("%q lacks %s", line, flag)
		}
	}
	again := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(line, "redlock-chaos "), "'/a place/redis'", "@"))
	for i := range again {
		again[i] = strings.ReplaceAll(again[i], "@", "/a place/redis")
	}
	if second := replay(append(again, "-quiet")); second != line {
		t.Errorf("replayed, the line is %q, was %q", second, line)
	}
}

func TestListShowsScenariosWorkloadsFaultsBackendsAndSubjects(t *testing.T) {
	status, text, _ := execute(t.Context(), t, "list")
	statusJSON, raw, _ := execute(t.Context(), t, "list", "-json")
	var got map[string][]any
	if err := json.Unmarshal([]byte(raw), &got); err != nil || status != 0 || statusJSON != 0 {
		t.Fatalf("status %d and %d, %v", status, statusJSON, err)
	}
	for _, what := range []string{"scenarios", "workloads", "faults", "backends", "subjects"} {
		if len(got[what]) == 0 {
			t.Errorf("no %s", what)
		}
	}
	for _, want := range []string{"partitions", "hot-key", "clock-step", "embedded", "quorum-of-two"} {
		if !strings.Contains(text, want) || !strings.Contains(raw, want) {
			t.Errorf("%s is not listed", want)
		}
	}
}

// TestControlsBuildMutants has one control without a mutant of the engine. With time it also has one with: that is
// caught in a build with it, and compared with the unchanged engine. The build takes a minute.
func TestControlsBuildMutants(t *testing.T) {
	t.Parallel()
	dir, controls := t.TempDir(), []string{"quorum-of-two"}
	if soak.On() {
		controls = append(controls, "redlock:half-quorum")
	}
	status, out, stderr := patiently(t.Context(), t, "controls", "-backend", "embedded", "-dir", dir, "-only",
		strings.Join(controls, ","), "-json", filepath.Join(dir, "t.json"), "-table", filepath.Join(dir, "t.md"))
	missing := func(name string) bool { return !strings.Contains(out, name) }
	if status != 0 || slices.ContainsFunc(controls, missing) || strings.Count(out, "held twice") < len(controls) {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "t.json"))
	var got []chaos.ControlResult
	if err != nil || json.Unmarshal(raw, &got) != nil || len(got) != len(controls) {
		t.Fatalf("%s, %v", raw, err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "t.md"))
	for _, r := range got {
		row := fmt.Sprintf("| %s | %s | overlap | 1 of %d |", r.Subject, r.Scenario, r.Runs)
		if err != nil || !r.Caught || r.Failed() || !strings.Contains(string(table), row) {
			t.Errorf("%+v; the table has no %q: %s, %v", r, row, table, err)
		}
	}
	if status, _, _ := execute(t.Context(), t, "controls", "-only", "nonsense"); status != 2 {
		t.Errorf("status %d for a control that there is not", status)
	}
}

func TestWrongSubcommandsGetHelpAndStatus2(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"nonsense"}} {
		status, _, stderr := execute(t.Context(), t, args...)
		if status != 2 || !strings.Contains(stderr, "usage:") || !strings.Contains(stderr, "controls") {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}

// A control that can't be run, after half an hour of others, leaves their results in the table.
func TestAControlThatCannotBeRunKeepsTheOthers(t *testing.T) {
	all := chooseControls("no-lock,quorum-of-two,quorum-of-one")
	broken := all[1].Subject.Name()
	var out strings.Builder
	results, err := tryControls(t.Context(), all, 2, func(c chaos.Control) (chaos.ControlResult, error) {
		if c.Subject.Name() == broken {
			return chaos.ControlResult{}, errors.New("no checkout")
		}
		return chaos.ControlResult{Subject: c.Subject.Name(), Caught: true}, nil
	}, &out)
	if len(results) != 2 || err == nil || err.Error() != broken+": no checkout" {
		t.Errorf("%v, %v", results, err)
	}
	if !strings.Contains(out.String(), "FAILED: no checkout") {
		t.Errorf("printed: %s", &out)
	}
}

// Without the go command no mutant can be built. That is no pass: the status and a message say so.
func TestWithoutTheGoCommandAMutantIsNoPass(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for args, want := range map[string]int{
		"controls -backend embedded -only redlock:half-quorum -dir " + t.TempDir(): exitSetup,
		"run -backend embedded -subject redlock:half-quorum -dir " + t.TempDir():   exitSetup,
		"sim -broken half-quorum -quiet":                                           exitUnknown,
	} {
		status, out, stderr := execute(t.Context(), t, strings.Fields(args)...)
		if status != want || !strings.Contains(stderr, "takes the go command and a checkout of the module") {
			t.Errorf("%s: status %d, want %d\n%s%s", args, status, want, out, stderr)
		}
	}
}
