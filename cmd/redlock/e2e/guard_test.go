//go:build unix

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The connection to the master is cut, so that the lock expires while the command runs, and redlock must end the
// command.

func TestHazard69AFullPipeDoesNotDelayTheEndOfTheCommand(t *testing.T) {
	s := newScene(t)
	read, write, err := os.Pipe()
	must(t, err)
	defer read.Close()
	defer write.Close()
	full := int(write.Fd())
	must(t, unix.SetNonblock(full, true))
	for err == nil {
		_, err = unix.Write(full, make([]byte, 512))
	}
	must(t, unix.SetNonblock(full, false))
	s.start(func(cmd *exec.Cmd) { cmd.Stderr = write }, "-stubborn")
	s.link.Close()
	s.endsWithItsLock()
}

func TestHazard69AClosedPipeDoesNotEndTheSupervision(t *testing.T) {
	s := newScene(t)
	read, write, err := os.Pipe()
	must(t, err)
	defer write.Close()
	cmd := s.start(func(cmd *exec.Cmd) { cmd.Stderr = write }, "-stubborn")
	must(t, read.Close())
	s.link.Close()
	s.endsWithItsLock()
	s.exits(cmd, 73)
}

func TestHazard69ClosedStandardErrorIsHarmless(t *testing.T) {
	s := newScene(t)
	s.start(func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@" 2>&-`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, "-stubborn")
	s.link.Close()
	s.endsWithItsLock()
}

func TestHazard70ACommandDoesNotOutliveItsLockWhileRedlockIsStopped(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			s := newScene(t)
			// The process must not be in a new session: a stopped process needs a parent that could continue it.
			cmd := s.start(func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }, "-nested")
			must(t, cmd.Process.Signal(sig))
			s.endsWithItsLock()
			must(t, cmd.Process.Signal(syscall.SIGCONT))
			s.exits(cmd, 73)
			s.nobodyWorksAfterTheRival()
		})
	}
}

func TestHazard70ACommandSurvivesAStopThatEndsWithinTheTTL(t *testing.T) {
	s := newScene(t)
	cmd := s.start(func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} })
	must(t, cmd.Process.Signal(syscall.SIGTSTP))
	s.until("both are stopped", func() bool { return isStopped(s.pids()[0]) && isStopped(cmd.Process.Pid) })
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	s.grows()
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	s.exits(cmd, -int(syscall.SIGTERM))
}

func TestHazard70ASignalReachesACommandThatIsStopped(t *testing.T) {
	s := newScene(t)
	cmd := s.start(nil)
	must(t, syscall.Kill(s.pids()[0], syscall.SIGSTOP))
	s.until("the command is stopped", func() bool { return isStopped(s.pids()[0]) })
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	s.exits(cmd, -int(syscall.SIGTERM))
}

// All processes stand still for longer than the ttl, as when a machine is suspended. redlock continues first and has
// several things to do at once. Whatever their order, the command must not run.
func TestHazard71AfterALongPauseTheCommandIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := newScene(t)
			cmd := s.start(nil, "-stubborn")
			watch := watchOf(t, cmd.Process.Pid)
			defer func() { _ = syscall.Kill(watch, syscall.SIGCONT) }()
			for _, pid := range append(s.pids(), cmd.Process.Pid, watch) {
				must(t, syscall.Kill(pid, syscall.SIGSTOP))
			}
			s.rival(0)
			if i%2 == 1 { // one more signal for which a stopped command must be continued
				must(t, cmd.Process.Signal(syscall.SIGTERM))
			}
			must(t, cmd.Process.Signal(syscall.SIGCONT))
			s.nobodyWorksAfterTheRival()
			s.exits(cmd, 73)
		})
	}
}

func TestHazard72TheCommandsProcessesEndWhenRedlockDies(t *testing.T) {
	s := newScene(t)
	cmd := s.start(nil, "-stubborn", "-nested")
	s.until("there is a second process", func() bool { return len(s.pids()) == 2 })
	must(t, cmd.Process.Kill())
	s.endsWithItsLock()
}

func TestHazard72AWatchThatIsKilledIsReplaced(t *testing.T) {
	s := newScene(t)
	said, err := os.Create(s.log + ".err")
	must(t, err)
	defer said.Close()
	cmd := s.start(func(cmd *exec.Cmd) { cmd.Stderr = said }, "-stubborn", "-nested")
	must(t, syscall.Kill(watchOf(t, cmd.Process.Pid), syscall.SIGKILL))
	if !wait(func() bool { return strings.Contains(readFile(t, said.Name()), "there is a new one") }) {
		t.Fatalf("there is no new watch process that knows its order: %q", readFile(t, said.Name()))
	}
	must(t, cmd.Process.Kill())
	s.endsWithItsLock()
}

// Killing redlock also kills a redlock under it. The inner redlock's command must not get a separate grace then.
func TestHazard72ACommandUnderTwoLocksOutlivesNeither(t *testing.T) {
	t.Parallel()
	for name, through := range map[string][]string{
		"directly":                   nil,
		"with another environment":   {"env", "-i", "PATH=" + os.Getenv("PATH")},
		"through a shell, and so on": {"sh", "-c", `"$@"; exit`, "sh", "env", "-i", "PATH=" + os.Getenv("PATH")},
	} {
		t.Run(name, func(t *testing.T) {
			if through != nil && runtime.GOOS != "linux" {
				t.Skip("only on Linux a redlock finds one above it that it is not told of")
			}
			s := newScene(t)
			cmd := s.start(func(cmd *exec.Cmd) {
				cmd.Args = append([]string{"redlock"}, s.nested(through, "-stubborn")...)
			})
			must(t, cmd.Process.Kill())
			s.endsWithItsLock()
		})
	}
}

// redlock can't kill a command that has become another user. It must say so, and must not pretend that the command
// ended.
func TestHazard72AKillThatIsRefusedIsReportedAndRepeated(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a program that becomes root")
	}
	s := newScene(t)
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // the directory of this whole test
	program := filepath.Join(dir, "guarded")
	copyFile(t, mustFind(t, "guarded"), program, 0o755)
	must(t, os.Chmod(program, 0o755|os.ModeSetuid))
	redlock := filepath.Join(dir, "redlock")
	copyFile(t, mustFind(t, "redlock"), redlock, 0o755)
	must(t, os.WriteFile(s.log, nil, 0o666))
	must(t, os.Chmod(s.log, 0o666))
	said, err := os.Create(filepath.Join(dir, "said"))
	must(t, err)
	defer said.Close()
	cmd := s.start(func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir, cmd.Stderr = redlock, "/", said
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir) // which this user may look into
		for i, arg := range cmd.Args {
			if arg == "guarded" {
				cmd.Args[i] = program
			}
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}, "-root")
	s.link.Close()
	if !wait(func() bool {
		return strings.Contains(readFile(t, said.Name()), "can't kill the command: operation not permitted")
	}) {
		t.Fatalf("it only says %q", readFile(t, said.Name()))
	}
	if ended(cmd.Process.Pid) {
		t.Error("redlock is gone before its command")
	}
	s.killWriters()
	s.exits(cmd, 77)
}

// The oracle must be able to fail.
func TestTheOracleSeesWorkAfterTheRival(t *testing.T) {
	s := newScene(t)
	must(t, os.WriteFile(s.log, []byte("works 1\nRIVAL\nworks 1\n"), 0o600))
	if n := s.late(); n != 1 {
		t.Errorf("%d late writes in %q", n, s.read())
	}
}

func mustFind(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	must(t, err)
	return path
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	must(t, redistest.WriteProgram(to, []byte(readFile(t, from)), mode))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	return string(raw)
}
