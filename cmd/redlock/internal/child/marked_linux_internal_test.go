//go:build linux

package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
)

func sleeper(t *testing.T, environ ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "60")
	cmd.Env = environ
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestOnlyTheExactEntryIsAMark(t *testing.T) {
	mark := "MARK=" + strconv.Itoa(os.Getpid()) + "/a"
	cmd := sleeper(t, "FIRST=1", mark, "LAST=1")
	for _, other := range []string{mark + "b", "X" + mark, "X=\n" + mark, mark[:len(mark)-1], "X=1"} {
		sleeper(t, other)
	}
	m := marked{entry: []byte(mark)}
	if err := m.find(nil); err != nil || len(m.found) != 1 || m.found[0].pid != cmd.Process.Pid {
		t.Errorf("%v are marked, want %d (%v)", m.found, cmd.Process.Pid, err)
	}
	none := marked{}
	if err := none.find(nil); err != nil || len(none.found) > 0 {
		t.Errorf("without a mark %v are marked (%v)", none.found, err)
	}
}

func TestTheProcessesOfTheGroupGetOneSIGTERM(t *testing.T) {
	mark := "MARK=" + strconv.Itoa(os.Getpid()) + "/group"
	cmd := sleeper(t, mark)
	if err := askMarked(mark, syscall.Getpgrp(), syscall.SIGTERM); err != nil || !markedLeft(mark) {
		t.Errorf("it got the signal although it is in this test's group (%v)", err)
	}
	_ = stopMarked(mark, syscall.Getpgrp())
	if err := askMarked(mark, syscall.Getpgrp()+1, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); diedOf(t, err) != syscall.SIGTERM {
		t.Errorf("it ended with %v", err)
	}
}

// Each of these processes starts the next one in a new session, and ends.
func TestAProcessThatIsNeverTheSameIsKilled(t *testing.T) {
	for name, script := range map[string]string{
		"one after the other": `echo >"$1"; setsid sh "$0" "$1" &`,
		"ever more":           `echo >"$1"; while :; do setsid sleep 60 & sleep 0.01; done`,
		"ever other programs": `echo >"$1"; exec sh "$0" "$1"`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, began := filepath.Join(dir, "script"), filepath.Join(dir, "began")
			if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				mark := "MARK=" + strconv.Itoa(os.Getpid()) + "/" + name + strconv.Itoa(i)
				_ = os.Remove(began)
				cmd := exec.Command("sh", path, began)
				cmd.Env = append(os.Environ(), mark)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
					if !markedLeft(mark) && os.IsNotExist(err) {
						break
					}
				}
				if err := killMarked(mark, nil); err != nil {
					t.Error(err)
				}
				ended := time.AfterFunc(10*time.Second, func() {
					t.Errorf("in try %d it is left", i)
					_ = cmd.Process.Kill()
				})
				_ = cmd.Wait() // killed, or it has started the next one
				ended.Stop()
				if !allGone(mark) {
					t.Fatalf("in try %d some are left", i)
				}
			}
		})
	}
}

// allGone waits until all killed processes have ended. A process that still runs is seen at nearly every look.
func allGone(mark string) bool {
	gone := 0
	for until := time.Now().Add(10 * time.Second); gone < 10 && time.Now().Before(until); {
		if gone++; markedLeft(mark) {
			gone = 0
		}
	}
	return gone == 10
}

// On a busy machine an exec takes long. Until it is over the process has no environment, and no one can tell whether it
// has the entry.
func TestAProcessInTheMiddleOfAnExecIsLookedAtAgain(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	looks := 0
	m := marked{entry: []byte("MARK=exec"), look: func(pid int, _ []byte) answer {
		if pid != cmd.Process.Pid {
			return no
		}
		if looks++; looks < 5 {
			return becoming
		}
		return yes
	}}
	if err := m.find(func(k known) error { return k.signal(syscall.SIGKILL) }); err != nil || looks != 5 {
		t.Errorf("looked at %d times, %v", looks, err)
	}
	if err := cmd.Wait(); diedOf(t, err) != syscall.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
}

// A shell with job control stops waiting when it finds its job stopped. So the shell is stopped before its job and
// continued after it.
func TestHazard93AShellDoesNotSeeItsJobStopped(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		redistest.NothingTested(t, err)
	}
	for name, tt := range map[string]struct {
		args      []string
		processes int
	}{
		"that waits for it":   {[]string{bash, "-c", `set -m; sleep 3600 & wait`}, 2},
		"that runs it":        {[]string{bash, "-c", `set -m; sleep 3600; echo over`}, 2},
		"that leads no group": {[]string{"timeout", "3600", bash, "-c", `set -m; sleep 3600; echo over`}, 3},
		"under another, with its own": {
			[]string{
				"timeout", "3600", bash, "-c",
				`set -m; timeout 3600 bash -c 'set -m; sleep 3600; echo over' & wait; echo over`,
			}, 5,
		},
	} {
		t.Run(name, func(t *testing.T) { stopAndGoOn(t, tt.args, tt.processes) })
	}
}

// stopAndGoOn stops a command of so many processes and continues it, many times. All processes must survive.
func stopAndGoOn(t *testing.T, args []string, processes int) {
	t.Helper()
	mark := "MARK=" + strconv.Itoa(os.Getpid()) + "/" + strings.ReplaceAll(t.Name(), "/", "-")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), mark), &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = killMarked(mark, nil) }()
	p := &Process{platform: platform{pid: cmd.Process.Pid, mark: mark}, done: make(chan struct{})}
	jobs := func(state string) bool { // all are in it
		m := marked{entry: []byte(mark)}
		_ = m.find(nil)
		return len(m.found) == processes && !slices.ContainsFunc(m.found, func(k known) bool {
			fields := statOf(k.pid)
			return len(fields) == 0 || string(fields[0]) != state
		})
	}
	reach := func(i int, state string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !jobs(state); {
			if time.Now().After(end) {
				t.Fatalf("time %d: not all of the %d are in state %s", i, processes, state)
			}
		}
	}
	reach(0, "S")
	for i := range soak.Or(20, 100) {
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		reach(i, "T")
		if err := p.Signal(Continue); err != nil {
			t.Fatal(err)
		}
		reach(i, "S")
	}
	if err := errors.Join(p.Kill(), cmd.Wait()); !errors.As(err, new(*exec.ExitError)) {
		t.Error(err)
	}
}
