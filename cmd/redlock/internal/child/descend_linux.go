package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// When a process ends, its children go to the nearest ancestor that has asked for orphans. This program does so.
// So every process that the command has started stays below this program, whatever group, session, environment or user
// it changes to. All are gone when this program has only its own children left. Only one goroutine waits for children,
// so no child disappears between two looks.

// againAtMost limits how often the parent of a process is read again.
const againAtMost = 10

// own are children of this program that the command did not start. They are the watch, and children that this program
// had before: a shell with background jobs can become this program by exec.
var own = struct {
	sync.Mutex
	pids  map[int]bool
	older bool // there were such children before the command, so an orphan may be theirs
}{pids: make(map[int]bool)}

// startOwn starts a child that does not belong to the command.
func startOwn(start func() (pid int, err error)) error {
	own.Lock()
	defer own.Unlock()
	pid, err := start()
	if err == nil {
		own.pids[pid] = true
	}
	return err
}

// errOtherProc is the reason why a command does not start if /proc numbers processes differently.
var errOtherProc = errors.New("/proc is not of this PID namespace, so the processes that the command starts can't be " +
	"found; " +
	"mount it, as unshare --mount-proc does")

// adopt makes this program the parent of orphans below it. Its present children do not belong to the command.
func adopt() error {
	if name, err := os.Readlink("/proc/self"); err != nil || name != strconv.Itoa(os.Getpid()) {
		return errOtherProc
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("can't wait for processes that a command leaves: %w", err)
	}
	own.Lock()
	defer own.Unlock()
	pids, err := children()
	for _, pid := range pids {
		own.older = own.older || !own.pids[pid]
		own.pids[pid] = true
	}
	return err
}

// isTheCommands says whether a child of this program is the command, or an orphan of it. A child that ended before may
// have left orphans, too. Where that is possible, an orphan counts as the command's only if it has the mark.
func isTheCommands(p *Process, pid int) answer {
	own.Lock()
	isOwn, older := own.pids[pid], own.older
	own.Unlock()
	switch {
	case isOwn:
		return no
	case !older || pid == p.Group():
		return yes
	default:
		return has(pid, []byte(p.mark))
	}
}

// children returns this program's children, including ended ones that were not reaped. The kernel lists them by the
// thread that forked them. Some kernels do not; there it checks the parent of every process.
func children() (pids []int, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	listed := false
	for _, thread := range threads {
		raw, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		switch {
		case err == nil:
			listed = true
		case unreadable(err): // a thread may have ended, but only one without children
			return nil, err
		}
		for field := range bytes.FieldsSeq(raw) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if listed {
		return pids, nil
	}
	all, err := processes()
	self := strconv.Itoa(os.Getpid())
	for _, pid := range all {
		fields, unread := readStat(pid)
		if err = cmp.Or(err, unread); len(fields) > parent && string(fields[parent]) == self {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// anyLeft reports whether the command has left any process. While it can't know, it waits. Only the goroutine that
// waits for children may call it: a child that ends during the call is still listed, and is reaped next.
func (p *Process) anyLeft() bool {
	for {
		pids, err := children()
		sure := err == nil
		for _, pid := range pids {
			switch isTheCommands(p, pid) {
			case yes:
				return true
			case no:
			default:
				sure = false
			}
		}
		if sure {
			return false
		}
		<-time.After(lookAgain)
	}
}

// descends says whether a process is below the command or an orphan of it. If a parent has ended, its children have
// a new parent, so descends reads the parent again. A hidden process counts as no parent.
func descends(p *Process, pid int) answer {
	self, again, below := os.Getpid(), 0, 0
	if pid == self {
		return no
	}
	for at := pid; at > 0; {
		if at == self {
			return isTheCommands(p, below)
		}
		if above := parentOf(at); above > 0 || at == 1 || at == pid || again == againAtMost {
			at, below = above, at
			continue
		}
		again++
		at, below = pid, 0
	}
	return no
}

// wait waits for the command, reports its stops, and waits for all processes that it has left.
func (p *Process) wait() {
	ended := false
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil && !ended: // other code has reaped it, which must not happen
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
		delete(own.pids, pid) // another process may soon have the number
		own.Unlock()
		if ended && !p.anyLeft() {
			close(p.gone)
			return
		}
	}
}

// Left names processes that the command has left, at most this many, and returns their total number.
func (p *Process) Left(atMost int) (names []string, n int) {
	all, _ := processes()
	for _, pid := range all {
		if fields := statOf(pid); len(fields) == 0 || bytes.ContainsAny(fields[state], "ZX") ||
			descends(p, pid) != yes {
			continue
		}
		if n++; len(names) < atMost {
			names = append(names, fmt.Sprintf("%s (%d)", nameOf(pid), pid))
		}
	}
	return names, n
}

// nameOf returns the name of a process's program, in a form that is safe to print.
func nameOf(pid int) string {
	quoted := strconv.QuoteToASCII(cmp.Or(commOf(pid), "a process"))
	return quoted[1 : len(quoted)-1]
}

// Group returns the id of the command's process group, and 0 when the command has ended, because another group may have
// its number then.
func (p *Process) Group() int {
	if p.hasEnded() {
		return 0
	}
	return p.pid
}
