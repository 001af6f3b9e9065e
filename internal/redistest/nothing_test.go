package redistest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestHazard116WithoutAServerOneTestFailsAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "go-build42", "b001", "redistest.test")
	must(t, os.MkdirAll(filepath.Dir(program), 0o700))
	self, err := os.Executable()
	must(t, err)
	content, err := os.ReadFile(self)
	must(t, err)
	must(t, redistest.WriteProgram(program, content, 0o700))
	run := func(env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run",
			"^TestAStartedServerAnswersByURL$|^TestArgsReachTheServer")
		cmd.Env = append(append(os.Environ(), "PATH="+t.TempDir(), "REDLOCK_NO_SERVER=", "REDISTEST_LEFT_OUT=", "CI="),
			env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	count := func(out string) [2]int { return [2]int{strings.Count(out, "--- FAIL"), strings.Count(out, "--- SKIP")} }

	first, err := run()
	if err == nil || count(first) != [2]int{1, 1} || !strings.Contains(first, "NO SERVER") ||
		!strings.Contains(first, "./test") {
		t.Errorf("the first package: %v\n%s\nwant one failure that says what to do, and one skip", err, first)
	}
	if next, err := run(); err != nil || count(next) != [2]int{0, 2} {
		t.Errorf("the next package of the same run: %v\n%s\nwant two skips", err, next)
	}
	must(t, os.Remove(filepath.Join(filepath.Dir(filepath.Dir(program)), "no-server")))
	list := filepath.Join(t.TempDir(), "left-out")
	out, err := run("REDLOCK_NO_SERVER=1", "REDISTEST_LEFT_OUT="+list)
	if err != nil || count(out) != [2]int{0, 2} {
		t.Errorf("without those tests: %v\n%s\nwant two skips", err, out)
	}
	lines, err := os.ReadFile(list)
	must(t, err)
	if n := strings.Count(string(lines), "valkey-server\tTest"); n != 2 || strings.Count(string(lines), "\n") != n {
		t.Errorf("the list of left-out tests, want two lines with reasons and names:\n%s", lines)
	}
}

func TestWithoutAServerRunSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := redistest.Run(t.Context(), redistest.Config{}); !errors.Is(err, redistest.ErrNoServer) {
		t.Errorf("Run: %v, want ErrNoServer", err)
	}
}

func TestAnyOtherMissingRequirementSkipsATestAndFailsItInCI(t *testing.T) {
	lack := func(tb redistest.TB) { redistest.NothingTested(tb, errors.New("no compiler")) }
	t.Setenv("REDISTEST_LEFT_OUT", "")
	t.Setenv("CI", "")
	var laptop fakeTB
	laptop.run(lack)
	t.Setenv("CI", "true")
	var pipeline fakeTB
	pipeline.run(lack)
	if len(laptop.skips) != 1 || len(laptop.fatals) != 0 || len(pipeline.skips) != 0 || len(pipeline.fatals) != 1 {
		t.Errorf("on a laptop %q and %q, in CI %q and %q; want a skip and a fatal",
			laptop.skips, laptop.fatals, pipeline.skips, pipeline.fatals)
	}
}
