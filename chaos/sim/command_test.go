package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/sim"
)

// command runs `redlock-chaos sim` in this process.
func command(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = sim.Main(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

func TestTheCommandsStatusesAndMessages(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "result.json")
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for name, tt := range map[string]struct {
		args   []string
		status int
		out    string // a part of the output
		err    string // a part of the complaint; "": there is none
	}{
		"a pass":            {[]string{"-schedules", "3"}, 0, "verdict: pass\n", ""},
		"one that is drawn": {[]string{"-schedules", "1", "-timeline"}, 0, "all faults are over", ""},
		"masters":           {[]string{"-schedules", "1", "-timeline", "-masters", "9"}, 0, "9 masters", ""},
		"a profile":         {[]string{"-schedules", "1", "-profile", "tokens"}, 0, "with fencing tokens", ""},
		"a violation": {
			[]string{"-broken", "plain-delete", "-schedules", "200"}, 1, "verdict: violation\n", "",
		},
		"each oracle's findings": {
			[]string{"-broken", "plain-delete", "-schedules", "60", "-on", "-whole"}, 1, "foreign-release: ", "",
		},
		"nothing promised": {
			[]string{"-profile", "blackout", "-schedules", "200"}, 1, "verdict: violation, as expected outside the " +
				"assumptions", "",
		},
		"a mistake there": {
			[]string{"-broken", "plain-delete", "-profile", "blackout", "-schedules", "200"},
			1, "verdict: violation\n", "",
		},
		"help":         {[]string{"-help"}, 2, "", "generation-not-checked, half-quorum"},
		"no such flag": {[]string{"-nonsense"}, 2, "", "-nonsense"},
		"no number":    {[]string{"-seed", "-1"}, 2, "", `"-1" for flag -seed`},
		"an argument":  {[]string{"nonsense"}, 2, "", `unexpected argument "nonsense"; see -help`},
		"no schedules": {
			[]string{"-schedules", "0"}, 2, "", "-schedules is 0, and must be at least 1; see -help",
		},
		"too many masters": {[]string{"-masters", "11"}, 2, "", "-masters is 11, and 10 is the most; see -help"},
		"masters of two sets": {
			[]string{"-profile", "membership", "-masters", "5"}, 2, "", "the profile membership draws two sets",
		},
		"no such mistake": {[]string{"-broken", "nonsense"}, 2, "", `no mistake is called "nonsense"`},
		"no such profile": {[]string{"-profile", "nonsense"}, 2, "", `no profile is called "nonsense"`},
		"no such profile of it": {
			[]string{"-broken", "no-drift", "-profile", "nonsense"}, 2, "", `no profile is called "nonsense"`,
		},
		"no such file": {[]string{"-replay", "nonsense.json"}, 2, "", "nonsense.json: no such file"},
		"not JSON":     {[]string{"-replay", file("nonsense")}, 2, "", "result.json: invalid character"},
		"the result of a pass": {
			[]string{"-replay", file(`{"verdict":"pass"}`)}, 2, "", "result.json: there is no schedule in it",
		},
		"one without a client": {
			[]string{"-replay", file(`{"masters":[{}]}`)}, 3, "", "1 masters and 0 clients can't be run",
		},
		"no place for a result": {
			[]string{"-schedules", "1", "-json", filepath.Join(t.TempDir(), "no", "where")},
			3, "verdict: pass\n", "no such file or directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := command(t.Context(), append([]string{"-quiet"}, tt.args...)...)
			if status != tt.status || !strings.Contains(stdout, tt.out) {
				t.Errorf("status %d, want %d and %q:\n%s", status, tt.status, tt.out, stdout)
			}
			if !strings.Contains(stderr, tt.err) || (stderr == "") != (tt.err == "") {
				t.Errorf("complains %q, want %q", stderr, tt.err)
			}
		})
	}
}

func TestAnInterruptedRunIsNoPass(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, stderr := command(ctx, "-schedules", "1000000")
	if status != 3 || !strings.Contains(stdout, "verdict: interrupted\n") {
		t.Errorf("status %d, want 3:\n%s%s", status, stdout, stderr)
	}
}

func TestTheProgressBarReachesItsEndAndIsWipedAway(t *testing.T) {
	t.Parallel()
	_, stdout, stderr := command(t.Context(), "-schedules", "20")
	if !strings.Contains(stderr, "] 20/20, ") || !strings.HasSuffix(stderr, "\r\x1b[K") {
		t.Errorf("the bar went like this: %q", stderr)
	}
	if strings.ContainsAny(stdout, "\r\x1b") {
		t.Errorf("it has spoilt the output: %q", stdout)
	}
}

// result holds the fields that a script reads from the file that -json names.
type result struct {
	Verdict   string             `json:"verdict"`
	Profile   string             `json:"profile"`
	FirstSeed *uint64            `json:"first_seed"`
	Schedules int                `json:"schedules"`
	Rate      float64            `json:"schedules_per_second"`
	Counts    map[string]int     `json:"counts"`
	Seed      *uint64            `json:"failed_seed"`
	Found     []oracle.Violation `json:"found"`
	Replay    string             `json:"replay"`
	Schedule  json.RawMessage    `json:"schedule"`
}

// written runs the command with -json and reads the result.
func written(t *testing.T, args ...string) (r result, status int, stdout, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := command(t.Context(), append([]string{"-quiet", "-json", path}, args...)...)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return r, status, stdout, path
}

func TestTheResultOfAPassSaysWhatWasRun(t *testing.T) {
	t.Parallel()
	r, status, _, _ := written(t, "-schedules", "40", "-seed", "7", "-profile", "tokens")
	if status != 0 || r.Verdict != "pass" || r.Profile != "tokens" || r.FirstSeed == nil || *r.FirstSeed != 7 ||
		r.Schedules != 40 {
		t.Errorf("status %d and %+v", status, r)
	}
	if r.Rate <= 0 || r.Counts["fenced"] == 0 {
		t.Errorf("%v schedules a second and the counts %v", r.Rate, r.Counts)
	}
	if r.Seed != nil || len(r.Found) > 0 || r.Replay != "" || len(r.Schedule) > 0 {
		t.Errorf("a pass has found something: %+v", r)
	}
}

// found returns the oracles' lines, which stand between the failing seed and the picture.
func found(t *testing.T, stdout string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)\nseed \d+:\n(.*?)\nthe smallest`).FindStringSubmatch(stdout)
	if m == nil {
		t.Fatalf("no violation is shown:\n%s", stdout)
	}
	return m[1]
}

func TestAFailureIsShrunkDrawnAndReplayed(t *testing.T) {
	t.Parallel()
	args := []string{"-broken", "half-quorum", "-schedules", "200", "-masters", "5", "-seed", "3"}
	r, status, stdout, path := written(t, args...)
	if status != 1 || r.Verdict != "violation" || r.Seed == nil || *r.Seed < 3 || len(r.Found) == 0 ||
		len(r.Schedule) == 0 {
		t.Errorf("status %d and %+v", status, r)
	}
	small := new(sim.Schedule)
	if err := json.Unmarshal(r.Schedule, small); err != nil || sessions(small) > 4 || len(small.Faults) > 1 {
		t.Errorf("shrunk to %d sessions and %d faults, %v", sessions(small), len(small.Faults), err)
	}
	for _, want := range []string{"HOLDS it as o1", "VIOLATION overlap", "\nreplay: " + r.Replay + "\n", "-replay " +
		path + "\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not print %q:\n%s", want, stdout)
		}
	}

	_, replay, ours := strings.Cut(r.Replay, "redlock-chaos sim ")
	if !ours {
		t.Fatalf("%q is no command of ours", r.Replay)
	}
	status, again, _ := command(t.Context(), append([]string{"-quiet"}, strings.Fields(replay)...)...)
	if status != 1 || found(t, again) != found(t, stdout) {
		t.Errorf("replayed from the seed, status %d:\n%swant:\n%s", status, found(t, again), found(t, stdout))
	}
	status, drawn, _ := command(t.Context(), "-replay", path)
	if status != 1 || drawn == "" || !strings.Contains(stdout, drawn) {
		t.Errorf("replayed from the shrunk schedule, status %d:\n%swant what is in:\n%s", status, drawn, stdout)
	}

	// The control: it is the mistake that fails, not the seed.
	whole := slices.DeleteFunc(strings.Fields(replay), func(arg string) bool {
		return arg == "-broken" || arg == "half-quorum"
	})
	if status, stdout, _ := command(t.Context(), append([]string{"-quiet"}, whole...)...); status != 0 {
		t.Errorf("without the mistake the seed has status %d:\n%s", status, stdout)
	}
}

// A program has no *testing.T and none of the testing package's flags, so the printed command must work without both.
func TestTheReplayCommandFailsInTheSameWay(t *testing.T) {
	t.Parallel()
	r, _, stdout, _ := written(t, "-broken", "plain-delete", "-schedules", "200")
	line := strings.Fields(r.Replay)
	if len(line) < 3 || line[0] != "go" {
		t.Fatalf("the replay command is %q", r.Replay)
	}
	c := exec.CommandContext(t.Context(), line[0], line[1:]...)
	c.Dir, c.Env = filepath.Join("..", ".."), append(os.Environ(), "GOWORK=") // as in a fresh checkout
	var complaints bytes.Buffer
	c.Stderr = &complaints
	again, err := c.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasSuffix(complaints.String(), "exit status 1\n") {
		t.Fatalf("%s: %v\n%s%s", r.Replay, err, again, complaints.String())
	}
	if got, want := found(t, string(again)), found(t, stdout); got != want {
		t.Errorf("the program found\n%sand this test\n%s", got, want)
	}
}

// A night runs every profile that the library promises to survive. It fails if one of the required
// events never happened.
func TestANightWithoutAllInterleavingsIsNoPass(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "night.json")
	status, stdout, stderr := command(t.Context(), "-night", "-quiet", "-schedules", "22", "-seed", "5", "-json", path)
	var n struct {
		Verdict   string `json:"verdict"`
		FirstSeed uint64 `json:"first_seed"`
		Schedules int    `json:"schedules"`
		Rows      map[string]int
		Profiles  []result `json:"profiles"`
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	must(t, json.Unmarshal(raw, &n))
	if status != 3 || n.Verdict != "unseen" || n.FirstSeed != 5 || n.Schedules != 22 ||
		!strings.Contains(stdout, "never seen: ") {
		t.Errorf("status %d and %+v\n%s", status, n, stdout)
	}
	promised := 0
	for _, p := range sim.Profiles() {
		if p.Promised {
			promised++
		}
	}
	seen := 0
	for _, r := range n.Rows {
		seen += min(r, 1)
	}
	if len(n.Profiles) != promised || len(n.Rows) < 40 || seen == 0 || seen == len(n.Rows) {
		t.Errorf("%d profiles, %d of %d rows seen", len(n.Profiles), seen, len(n.Rows))
	}
	if status, _, stderr := command(t.Context(), "-night", "-profile", "within"); status != 2 ||
		!strings.Contains(stderr, "-night is every profile") {
		t.Errorf("status %d for a night of one profile: %s", status, stderr)
	}
}

// A twin run finds a version that behaves differently, and only that.
func TestTwoNightsOfOneVersionAreTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")
	run := []string{"-night", "-quiet", "-schedules", "22", "-seed", "5", "-json"}
	command(t.Context(), append(run, before)...)
	if status, stdout,
		stderr := command(t.Context(), append(run, after, "-same", before)...); !strings.Contains(stdout,
		"\nthe same as "+before) {
		t.Errorf("the second of two equal nights ended with %d:\n%s%s", status, stdout, stderr)
	}
	raw, err := os.ReadFile(before)
	must(t, err)
	changed := regexp.MustCompile(`"acquired": (\d+)`).ReplaceAll(raw, []byte(`"acquired": 1$1`))
	must(t, os.WriteFile(before, changed, 0o600))
	status, stdout, _ := command(t.Context(), append(run, after, "-same", before)...)
	if !strings.Contains(stdout, "\nnight.profiles[0].counts.acquired: 1") || strings.Contains(stdout, "the same as") ||
		status == 0 {
		t.Errorf("a night with other counts ended with %d:\n%s", status, stdout)
	}
	if status, _, stderr := command(t.Context(), "-night", "-same", before); status != 2 ||
		!strings.Contains(stderr, "-same compares") {
		t.Errorf("status %d without -json: %s", status, stderr)
	}
}

// A log is not to be full of bars.
func TestNoBarIsDrawnInAFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	defer file.Close()
	var stdout bytes.Buffer
	status := sim.Main(t.Context(), []string{"-schedules", "20"}, &stdout, file)
	if said, err := os.ReadFile(file.Name()); status != 0 || err != nil || len(said) > 0 || stdout.Len() == 0 {
		t.Errorf("status %d, %v, in the file: %q", status, err, said)
	}
}
