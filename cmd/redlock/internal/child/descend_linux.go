package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process whose parent ends goes to the nearest ancestor that has asked for such orphans. This program asks, so everything that the command
// has started stays below this program, whatever it does to its group, its session, its environment or its user: it is gone when this
// program has no other children than its own. Since nobody else waits for children here, none disappears between two looks.

// againAtMost bounds how often a process is asked for its parent again.
const againAtMost = 10

// own are children of this program that are not the command's: the watch, and what this program had before, which happens when a
// shell with background jobs becomes this program by exec.
var own struct {
	sync.Mutex
	pids map[int]bool
}

// startOwn starts a child that is not the command's.
func startOwn(start func() (pid int, err error)) error {
	own.Lock()
	defer own.Unlock()
	pid, err := start()
	if err == nil {
		ownLocked(pid)
	}
	return err
}

func ownLocked(pids ...int) {
	if own.pids == nil {
		own.pids = make(map[int]bool)
	}
	for _, pid := range pids {
		own.pids[pid] = true
	}
}

func isOwn(pid int) bool {
	own.Lock()
	defer own.Unlock()
	return own.pids[pid]
}

// errOtherProc is why a command does not start where processes have other numbers than in /proc.
var errOtherProc = errors.New("/proc is not that of this PID namespace, so what the command starts can't be found; " +
	"mount it, as unshare --mount-proc does")

// adopt makes this program the parent of orphans below it. The children that it has already are not the command's.
func adopt() error {
	if name, err := os.Readlink("/proc/self"); err != nil || name != strconv.Itoa(os.Getpid()) {
		return errOtherProc
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("can't wait for what a command leaves: %w", err)
	}
	own.Lock()
	defer own.Unlock()
	ownLocked(children()...)
	return nil
}

// children are this program's, also those that have ended and were not waited for. The kernel lists them by the thread that has forked them.
// Some kernels do not; there all processes are asked for their parent.
func children() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is well-formed
	for _, list := range lists {
		raw, _ := os.ReadFile(list) // only threads without children end
		for field := range bytes.FieldsSeq(raw) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if len(lists) > 0 {
		return pids
	}
	self := os.Getpid()
	return slices.DeleteFunc(processes(), func(pid int) bool { return parentOf(pid) != self })
}

// anyLeft says whether the command has left any process. It is for the only goroutine that waits for children: what ends meanwhile is
// still seen, and is waited for next.
func anyLeft() bool {
	own.Lock()
	defer own.Unlock()
	return slices.ContainsFunc(children(), func(pid int) bool { return !own.pids[pid] })
}

// descends says whether a process is below this program, and not by way of a child of its own. A parent that has ended
// has left its children to another, so the process is asked again; one that is hidden is no parent.
func descends(pid int) bool {
	self, again := os.Getpid(), 0
	for at := pid; at > 0 && !isOwn(at); {
		if at == self {
			return pid != self
		}
		if above := parentOf(at); above > 0 || at == 1 || at == pid || again == againAtMost {
			at = above
			continue
		}
		again++
		at = pid
	}
	return false
}

// wait waits for the command, tells of its stops, and waits for all that it has left.
func (p *Process) wait() {
	ended := false
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil && !ended: // somebody else has waited for it, which nobody does
			p.end(Status{Code: 1})
			fallthrough
		case err != nil: // there are no children at all
			close(p.gone)
			return
		case ws.Stopped():
			if pid == p.pid {
				p.tellStop(ws.StopSignal())
			}
			continue
		case pid == p.pid:
			p.end(statusOf(ws))
			ended = true
		}
		own.Lock()
		delete(own.pids, pid) // the number may be another's soon
		own.Unlock()
		if ended && !anyLeft() {
			close(p.gone)
			return
		}
	}
}

// Left names processes that the command has left, at most this many, and says how many there are.
func (p *Process) Left(atMost int) (names []string, n int) {
	for _, pid := range processes() {
		if fields := statOf(pid); len(fields) == 0 || bytes.ContainsAny(fields[state], "ZX") || !descends(pid) {
			continue
		}
		if n++; len(names) < atMost {
			names = append(names, fmt.Sprintf("%s (%d)", nameOf(pid), pid))
		}
	}
	return names, n
}

// nameOf is the name of a process's program, as far as it can be shown.
func nameOf(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "a process"
	}
	quoted := strconv.QuoteToASCII(string(bytes.TrimSpace(name)))
	return quoted[1 : len(quoted)-1]
}

// Group is the id of the command's process group, 0 when the command has ended: its number may be another's then.
func (p *Process) Group() int {
	if p.hasEnded() {
		return 0
	}
	return p.pid
}
