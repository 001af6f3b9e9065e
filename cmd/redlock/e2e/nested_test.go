//go:build unix

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestHazard127ANestedRunOfTheSameKeyFailsAtOnce(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	const never = "would wait for itself"
	for name, c := range map[string]struct {
		lines  []string // each runs under the one before
		status int
		said   string
	}{
		"the same key":           {[]string{"-key a", "-key a"}, 75, never},
		"one attempt":            {[]string{"-key a1", "-key a1 -try"}, 75, never},
		"with another between":   {[]string{"-key b", "-key c", "-key b"}, 75, never},
		"one of several":         {[]string{"-key d", "-key e -key d"}, 75, never},
		"the only permit":        {[]string{"-key f -n 1", "-key f -n 1"}, 75, never},
		"every permit":           {[]string{"-key g -n 2", "-key g -n 2", "-key g -n 2"}, 75, never},
		"a writer under readers": {[]string{"-key h -shared", "-key h -exclusive"}, 75, never},
		"another key":            {[]string{"-key i", "-key j"}, 0, "done"},
		"another permit":         {[]string{"-key k -n 2", "-key k -n 2"}, 0, "done"},
		"another reader":         {[]string{"-key l -shared", "-key l -shared"}, 0, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := "echo done"
			for i := len(c.lines) - 1; i > 0; i-- {
				line = "redlock run " + c.lines[i] + " -- " + line
			}
			args := append([]string{"REDLOCK_MASTERS=" + master.URL(), "run"}, strings.Fields(c.lines[0])...)
			runRedlock(t, append(args, "-c", line)...).want(t, c.status, c.said)
		})
	}
	// It is right to wait for this holder.
	must(t, master.Client().Set(t.Context(), "m", "somebody-else", 1500*time.Millisecond).Err())
	runRedlock(t, "REDLOCK_MASTERS="+master.URL(), "run", "-key", "n", "--", "redlock", "run", "-key", "m", "--",
		"echo", "done").want(t, 0, "done")
}

// The line of the manual, on two machines. Their clocks differ by more than the job takes.
func TestHazard126TheCrontabLineRunsAShortJobOnce(t *testing.T) {
	t.Parallel()
	manual := readFile(t, "../../../docs/operate/command.md")
	found := regexp.MustCompile(`(?m)^ {4}\*/5 \* \* \* \* (.*)$`).FindStringSubmatch(manual)
	if found == nil {
		t.Fatal("the manual shows no crontab line")
	}
	master := redistest.Start(t)
	for name, c := range map[string]struct {
		without string
		want    int
	}{
		"as it is":          {"", 1},
		"without -min-hold": {" -min-hold 1m", 2}, // the negative control
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config, log, job := filepath.Join(dir, "redlock", "config"), filepath.Join(dir, "log"),
				filepath.Join(dir, "report")
			must(t, os.Mkdir(filepath.Dir(config), 0o700))
			must(t, os.WriteFile(config, []byte("masters = "+master.URL()+"\n"), 0o600))
			must(t, redistest.WriteProgram(job, []byte("#!/bin/sh\nsleep 0.05\necho ran >>"+log+"\n"), 0o755))
			line := strings.NewReplacer("redlock run", "XDG_CONFIG_HOME="+dir+" redlock run", "/usr/local/bin/report",
				job, "-key report", "-key "+name[:2]).Replace(found[1])
			if c.without != "" && !strings.Contains(line, c.without) {
				t.Fatalf("the line has no %q: %s", c.without, line)
			}
			line = strings.Replace(line, c.without, "", 1)
			for machine := range 2 {
				<-time.After(time.Duration(machine) * 1200 * time.Millisecond) // the second one's clock is late
				if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil || len(out) > 0 {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if got := strings.Count(readFile(t, log), "ran"); got != c.want {
				t.Errorf("the job ran %d times, want %d", got, c.want)
			}
		})
	}
}
