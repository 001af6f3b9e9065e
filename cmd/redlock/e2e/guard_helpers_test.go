//go:build unix

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

const (
	guardedTTL = 4 * time.Second
	// killSlack is how late a kill at the end of the validity may be on a busy machine. The faults that these tests
	// look for take seconds, or never end.
	killSlack = guardedTTL / 4
	guardKey  = "deploy"
)

// scene is one master, a command that runs under a lock on it, and the log that the command writes.
type scene struct {
	t        *testing.T
	master   *redistest.Server
	link     *oddserver.Server // redlock's connection to the master; Close cuts it
	key, log string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	master := redistest.Start(t)
	s := &scene{
		t: t, master: master, link: oddserver.Start(t, master.Addr(), nil), key: guardKey,
		log: filepath.Join(t.TempDir(), "log"),
	}
	t.Cleanup(s.killWriters)
	return s
}

// args are redlock's arguments for a guarded command with these arguments.
func (s *scene) args(guarded ...string) []string {
	args := []string{
		"run", "-masters", "redis://" + s.link.Addr(), "-key", guardKey, "-ttl", guardedTTL.String(), "--",
		"guarded",
	}
	return append(append(args, guarded...), "-log", s.log)
}

// nested returns the arguments for a command under two locks: the first redlock starts the second through other
// programs. The inner lock has a long ttl and a long grace.
func (s *scene) nested(through []string, guarded ...string) []string {
	args := s.args(guarded...)
	at := slices.Index(args, "--")
	return slices.Insert(args, at+1,
		append(slices.Clone(through), "redlock", "run", "-masters", "redis://"+s.link.Addr(), "-key", "inner", "-ttl",
			"60s", "-grace", "30s", "--")...)
}

// start runs redlock with no terminal, and waits until its command works.
func (s *scene) start(prepare func(*exec.Cmd), guarded ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command("redlock", s.args(guarded...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if prepare != nil {
		prepare(cmd)
	}
	must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.eventually("works ")
	return cmd
}

// eventually waits until the log holds the text.
func (s *scene) eventually(text string) {
	s.t.Helper()
	if !wait(func() bool { return strings.Contains(s.read(), text) }) {
		s.t.Fatalf("no %q in the log: %.300q", text, s.read())
	}
}

func (s *scene) until(what string, isSo func() bool) {
	s.t.Helper()
	redistest.Eventually(s.t, patience, isSo, what)
}

// grows waits until the command has written something more.
func (s *scene) grows() {
	s.t.Helper()
	before := len(s.read())
	s.until("the command goes on working", func() bool { return len(s.read()) > before })
}

func (s *scene) read() string {
	raw, _ := os.ReadFile(s.log)
	return string(raw)
}

// pids are the processes that have written into the log.
func (s *scene) pids() []int {
	var pids []int
	for line := range strings.Lines(s.read()) {
		if number, ok := strings.CutPrefix(line, "works "); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(number)); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (s *scene) killWriters() {
	for _, pid := range s.pids() {
		if commandOf(pid) == "guarded" {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// commandOf is the name under which a process was started.
func commandOf(pid int) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _, _ := strings.Cut(string(raw), "\x00")
	return filepath.Base(name)
}

// rival takes the lock in another way as soon as it is free, and marks the log after slack.
func (s *scene) rival(slack time.Duration) {
	s.t.Helper()
	must(s.t, s.takeOver(slack))
}

// takeOver is rival in a goroutine of its own.
func (s *scene) takeOver(slack time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	locker, err := redlock.Dial(ctx, []string{s.master.URL()}, redlock.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close(context.Background()) }()
	lock, err := locker.Acquire(ctx, s.key, time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(context.Background()) }() // a busy server may not answer in time
	<-time.After(slack)
	f, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("RIVAL\n")
	return errors.Join(err, f.Close())
}

// late counts what the command wrote after the rival had the lock.
func (s *scene) late() int {
	s.t.Helper()
	_, after, found := strings.Cut(s.read(), "RIVAL\n")
	if !found {
		s.t.Fatal("the rival never had the lock, so this test proves nothing")
	}
	return strings.Count(after, "works ")
}

// nobodyWorksAfterTheRival is the oracle.
func (s *scene) nobodyWorksAfterTheRival() {
	s.t.Helper()
	wait(func() bool {
		return s.late() > 0 || !slices.ContainsFunc(s.pids(), func(pid int) bool { return !ended(pid) })
	})
	if n := s.late(); n > 0 {
		s.t.Fatalf("the command wrote %d times after another holder had the lock", n)
	}
	if len(s.pids()) == 0 {
		s.t.Fatal("no command has ever written to the log")
	}
}

// endsWithItsLock fails the test unless the command ends before a rival has the lock.
func (s *scene) endsWithItsLock() {
	s.t.Helper()
	s.rival(killSlack)
	s.nobodyWorksAfterTheRival()
}

// exits waits until redlock has ended, and fails the test unless its status is one of these; -n for signal n.
func (s *scene) exits(cmd *exec.Cmd, want ...int) {
	s.t.Helper()
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		s.t.Fatal("redlock does not end")
	}
	got := cmd.ProcessState.ExitCode()
	if ended := cmd.ProcessState.Sys().(syscall.WaitStatus); ended.Signaled() {
		got = -int(ended.Signal())
	}
	if !slices.Contains(want, got) {
		s.t.Errorf("redlock ended with %d, want %d", got, want)
	}
}

// statOf returns the state of a process and its parent; "" if it is gone, or there is no /proc.
func statOf(pid int) (state string, parent int) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	parent, _ = strconv.Atoi(fields[1]) // it is a number
	return fields[0], parent
}

// ended reports whether the process is gone, or is a zombie.
func ended(pid int) bool {
	state, _ := statOf(pid)
	return state == "Z" || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func isStopped(pid int) bool {
	state, _ := statOf(pid)
	return state == "T"
}

// childrenOf lists the child processes of parent, or with zombies only those that have ended and were not reaped.
func childrenOf(t *testing.T, parent int, zombies bool) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path)) // every name of the pattern is a number
		if state, above := statOf(pid); above == parent && (state == "Z") == zombies {
			pids = append(pids, pid)
		}
	}
	return pids
}

// watchOf returns the process that watches over this redlock.
func watchOf(t *testing.T, redlock int) (watch int) {
	t.Helper()
	redistest.Eventually(t, patience, func() bool {
		for _, pid := range childrenOf(t, redlock, false) {
			if raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(raw), "(watch)") {
				watch = pid
			}
		}
		return watch != 0
	}, "there is a watch process")
	return watch
}
