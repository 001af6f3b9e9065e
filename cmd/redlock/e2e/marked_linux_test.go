package e2e_test

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// scripts start the guarded command in a process group that is not the job's.
var scripts = map[string][]string{
	"timeout":     {"sh", "-c", `timeout 60 "$@"; exit`, "sh"},
	"job control": {"bash", "-c", `set -m; "$@" & wait`, "bash"},
	"a session":   {"sh", "-c", `setsid "$@" & wait`, "sh"},
	"two of them": {"sh", "-c", `timeout 60 setsid timeout 60 "$@"; exit`, "sh"},
}

// outside starts redlock with the guarded command outside of the job's group.
func (s *scene) outside(script []string, guarded ...string) *exec.Cmd {
	s.t.Helper()
	if _, err := exec.LookPath(script[0]); err != nil {
		redistest.NothingTested(s.t, "there is no "+script[0])
	}
	cmd := s.start(func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a stopped process needs a parent that could continue it
		cmd.Args = slices.Insert(cmd.Args, slices.Index(cmd.Args, "--")+1, script...)
	}, guarded...)
	job := childrenOf(s.t, cmd.Process.Pid, false)
	if group, err := syscall.Getpgid(s.pids()[0]); err != nil || slices.Contains(job, group) {
		s.t.Fatalf("the command is in group %d of %v: this shows nothing (%v)", group, job, err)
	}
	return cmd
}

func TestHazard72AProcessThatHasLeftTheGroupEndsWithTheLock(t *testing.T) {
	t.Parallel()
	for name, script := range scripts {
		for how, lose := range map[string]func(*scene, *exec.Cmd){
			"not renewed": func(s *scene, _ *exec.Cmd) { s.link.Close() },
			"deleted": func(s *scene, _ *exec.Cmd) {
				must(s.t, s.master.Client().Del(s.t.Context(), guardKey).Err())
			},
			"redlock is killed":  func(s *scene, cmd *exec.Cmd) { must(s.t, cmd.Process.Kill()) },
			"redlock is stopped": func(s *scene, cmd *exec.Cmd) { must(s.t, cmd.Process.Signal(syscall.SIGSTOP)) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := newScene(t)
				cmd := s.outside(script, "-stubborn")
				lose(s, cmd)
				if how != "deleted" { // a rival may have a deleted lock before the command learns of it
					s.endsWithItsLock()
				}
				s.until("it has ended", func() bool { return ended(s.pids()[0]) })
			})
		}
	}
}

// A process that gets the signal to end has the grace for its clean-up, and gets the signal once.
func TestHazard72AProcessThatHasLeftTheGroupGetsSIGTERMFirst(t *testing.T) {
	s := newScene(t)
	const guarded = `trap 'echo asked >>"$1"; sleep 0.2; echo cleaned >>"$1"; exit' TERM
		echo works $$ >>"$1"; while :; do sleep 0.1; done`
	cmd := exec.Command("redlock", s.args()...)
	at := slices.Index(cmd.Args, "--") + 1
	cmd.Args = append(cmd.Args[:at], "sh", "-c", `trap : TERM; timeout 60 sh -c "$1" sh "$2"; wait`, "sh", guarded,
		s.log)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, cmd.Start())
	s.eventually("works ")
	must(t, s.master.Client().Del(t.Context(), guardKey).Err())
	s.exits(cmd, 73)
	if log := s.read(); strings.Count(log, "cleaned") != 1 {
		t.Errorf("the log is %q", log)
	}
}

func TestHazard72ARedlockThatHasLeftTheGroupEndsWithTheLock(t *testing.T) {
	s := newScene(t)
	s.start(func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"redlock"}, s.nested(scripts["timeout"], "-stubborn")...)
	})
	s.link.Close()
	s.endsWithItsLock()
}

func TestHazard70AProcessThatHasLeftTheGroupIsStoppedWithIt(t *testing.T) {
	t.Parallel()
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			cmd := s.outside(script)
			must(t, cmd.Process.Signal(syscall.SIGTSTP))
			s.until("both are stopped", func() bool { return isStopped(s.pids()[0]) && isStopped(cmd.Process.Pid) })
			must(t, cmd.Process.Signal(syscall.SIGCONT))
			s.grows()
			s.link.Close()
			s.endsWithItsLock()
		})
	}
}

// With -leader-only, redlock leaves processes alone that the command has left.
func TestLeaderOnlyLeavesOtherProcessesOfTheCommandAlone(t *testing.T) {
	s := newScene(t)
	cmd := s.start(func(cmd *exec.Cmd) {
		at := slices.Index(cmd.Args, "--")
		cmd.Args = slices.Insert(cmd.Args, at+1, "sh", "-c", `setsid "$@" & until [ -s "$4" ]; do sleep 0.1; done`,
			"sh")
		cmd.Args = slices.Insert(cmd.Args, at, "-leader-only")
	}, "-stubborn")
	s.exits(cmd, 0)
	s.grows()
}
