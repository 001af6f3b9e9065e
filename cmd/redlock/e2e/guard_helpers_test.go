//go:build unix

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
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
	t      *testing.T
	master *redistest.Server
	link   *link // redlock's connection to the master
	log    string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	master := redistest.Start(t)
	s := &scene{t: t, master: master, link: newLink(t, master.Addr()), log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(s.killWriters)
	return s
}

// args are redlock's arguments for a guarded command with these arguments.
func (s *scene) args(guarded ...string) []string {
	args := []string{
		"run", "-masters", "redis://" + s.link.addr(), "-key", guardKey, "-ttl", guardedTTL.String(), "--",
		"guarded",
	}
	return append(append(args, guarded...), s.log)
}

// nested returns the arguments for a command under two locks: the first redlock starts the second through other
// programs. The inner lock has a long ttl and a long grace.
func (s *scene) nested(through []string, guarded ...string) []string {
	args := s.args(guarded...)
	at := slices.Index(args, "--")
	return slices.Insert(args, at+1,
		append(slices.Clone(through), "redlock", "run", "-masters", "redis://"+s.link.addr(), "-key", "inner", "-ttl",
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

// grows waits until the command has written something more.
func (s *scene) grows() {
	s.t.Helper()
	before := len(s.read())
	if !wait(func() bool { return len(s.read()) > before }) {
		s.t.Fatal("the command does not work any more")
	}
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
	ctx, cancel := context.WithTimeout(s.t.Context(), patience+guardedTTL)
	defer cancel()
	locker, err := redlock.Dial(ctx, []string{s.master.URL()}, redlock.Options{})
	must(s.t, err)
	lock, err := locker.Acquire(ctx, guardKey, time.Minute)
	must(s.t, err)
	s.t.Cleanup(func() {
		_ = lock.Release(context.Background())
		_ = locker.Close(context.Background())
	})
	<-time.After(slack)
	f, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	must(s.t, err)
	_, err = f.WriteString("RIVAL\n")
	must(s.t, errors.Join(err, f.Close()))
}

// nobodyWorksAfterTheRival is the oracle.
func (s *scene) nobodyWorksAfterTheRival() {
	s.t.Helper()
	late := func() int {
		_, after, found := strings.Cut(s.read(), "RIVAL\n")
		if !found {
			s.t.Fatal("the rival never had the lock, so this test proves nothing")
		}
		return strings.Count(after, "works ")
	}
	wait(func() bool {
		return late() > 0 || !slices.ContainsFunc(s.pids(), func(pid int) bool { return !ended(pid) })
	})
	if n := late(); n > 0 {
		s.t.Fatalf("the command wrote %d times after another holder had the lock", n)
	}
	if len(s.pids()) == 0 {
		s.t.Fatal("no command has ever written to the log")
	}
}

// exit waits until redlock has ended.
func (s *scene) exit(cmd *exec.Cmd) syscall.WaitStatus {
	s.t.Helper()
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		s.t.Fatal("redlock does not end")
	}
	return cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// link is a connection to a server that can be cut.
type link struct {
	listener net.Listener
	mu       sync.Mutex
	cut      bool
	conns    []net.Conn
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &link{listener: listener}
	var copies sync.WaitGroup
	copies.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil || !l.join(near, far) {
				_ = near.Close()
				continue
			}
			copies.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
			copies.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.sever()
		copies.Wait()
	})
	return l
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) join(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = conns[1].Close()
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

// sever cuts the link permanently.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// childrenOf lists the child processes of parent.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil &&
			fields[1] == strconv.Itoa(parent) && fields[0] != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// watchOf returns the process that watches over this redlock.
func watchOf(t *testing.T, redlock int) (watch int) {
	t.Helper()
	wait(func() bool {
		for _, pid := range childrenOf(t, redlock) {
			if raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(raw), "(watch)") {
				watch = pid
			}
		}
		return watch != 0
	})
	return watch
}
