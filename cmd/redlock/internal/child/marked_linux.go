package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// looksAtMost limits how often the list of processes is read again because of new processes.
	looksAtMost = 100
	// execTime is how long each look waits for a process that has no environment because it is becoming another
	// program.
	execTime = 50 * time.Millisecond
	// standTime is how long to wait, for all processes together, until SIGSTOP has stopped them.
	standTime = 200 * time.Millisecond
)

var (
	errTooMany = errors.New("its processes go on starting other processes")
	// errUnread: find may have missed processes, because this program or the system had no descriptor or no memory left
	// to read about them.
	errUnread = errors.New("can't read which processes there are")
)

// marked are the processes with an entry in their environment, wherever they have gone: to another group, session or
// parent. A process inherits its environment from its creator, as it inherits its group, but timeout(1) and a shell's
// set -m change only the group.
//
// A process that was found is known by its number and its start, so no signal hits another process that got its number
// later. Nothing stays open, because a command may leave more processes than this program may have open. A redlock
// under this one has the entry too, as every process that the command starts. Its watch and its command do not have it:
// they get from that redlock the signal that they get when the group is signalled. No older process can have the entry,
// because it is a secret of this run.
//
// A process is out of reach if it has removed the entry from its environment (env -i, sudo) or overwritten it, as a
// program may that changes its title. A process that has become another user is also out of reach, because its
// environment can't be read.
type marked struct {
	entry []byte
	found []known
	look  func(pid int, entry []byte) answer // nil: has
}

// answer says whether a process has the entry.
type answer uint8

const (
	no answer = iota
	yes
	becoming // not known: the process is in the middle of an exec
	unread   // not known: see errUnread
)

// known is a process that was found.
type known struct {
	pid   int
	began string // its start by the kernel's clock
}

// signal sends sig to the process if it is still there. The process is opened before its start is read. (A kernel
// before 5.3 can't open processes. There the time between reading and signalling is a risk.)
func (k known) signal(sig os.Signal) error {
	p, err := os.FindProcess(k.pid)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }() // frees a descriptor
	fields, err := readStat(k.pid)
	if err != nil || beganOf(fields) != k.began {
		return err
	}
	if err := p.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// find finds the processes that have the entry. Unless each is nil, it calls each for every process as soon as it finds
// it. It reads the list of processes again until the list has nothing new.
//
// If each sends SIGKILL or SIGSTOP, no process escapes by starting others in that time. If a process
//
//	starts one and is found then    the new one is in the next list: once the signal is pending, no fork succeeds
//	starts one and ends unfound     the number of the new one is not in this list, so another list is read
//	becomes another program         it has no environment, or the old one: find looks again until it has one
//
// When there is nothing new, find looks again at all processes that did not have the entry. Without this look it
// missed, once in a whole run of the tests, a process that was always in the middle of an exec.
//
// A process that forks and ends between two lists, again and again, could escape only while the process numbers wrap
// around.
func (m *marked) find(each func(known) error) error {
	if len(m.entry) == 0 {
		return nil
	}
	look := m.look
	if look == nil {
		look = has
	}
	looked, listed := map[int]bool{os.Getpid(): true}, make(map[int]bool)
	var failed error
	again := false
	for range looksAtMost {
		found := false
		all, err := processes()
		failed = cmp.Or(failed, err)
		for _, pid := range all {
			if looked[pid] {
				continue
			}
			k, a := meet(pid, m.entry, look)
			found = found || a == yes || a == becoming || !listed[pid]
			looked[pid], listed[pid] = a != becoming, true
			switch a {
			case unread:
				failed = cmp.Or(failed, errUnread)
			case yes:
				m.found = append(m.found, k)
				if each != nil {
					failed = cmp.Or(failed, each(k))
				}
			}
		}
		switch {
		case found:
		case again:
			return failed
		default:
			again, looked = true, map[int]bool{os.Getpid(): true}
			for _, k := range m.found {
				looked[k.pid] = true
			}
		}
	}
	return cmp.Or(failed, errTooMany)
}

// signal sends sig to all found processes, the last one first: later processes are mostly children of earlier ones.
func (m *marked) signal(sig os.Signal) (failed error) {
	for _, k := range slices.Backward(m.found) {
		failed = cmp.Or(failed, k.signal(sig))
	}
	return failed
}

func (m *marked) outside(group int) {
	m.found = slices.DeleteFunc(m.found, func(k known) bool { return isIn(group, k.pid) })
}

// killMarked kills all processes that have the entry, and all that look finds.
func killMarked(entry string, look func(pid int, entry []byte) answer) error {
	m := marked{entry: []byte(entry), look: look}
	return m.find(func(k known) error { return k.signal(syscall.SIGKILL) })
}

// askMarked sends a signal to end, and SIGCONT, to all processes that have the entry and are not in the group. It finds
// them all first, so it does not signal processes that start later for a clean-up.
func askMarked(entry string, group int, sig os.Signal) error {
	m := marked{entry: []byte(entry)}
	failed := m.find(nil)
	m.outside(group)
	return cmp.Or(failed, m.signal(sig), m.signal(syscall.SIGCONT))
}

// signalLeft sends sig to the command's processes that are left: those with its mark or in its group. A redlock among
// them passes the signal on to its own command.
func (p *Process) signalLeft(sig os.Signal) error {
	m := marked{entry: []byte(p.mark), look: func(pid int, entry []byte) answer {
		if !isIn(p.pid, pid) {
			return has(pid, entry)
		}
		return descendsOrHas(p)(pid, entry)
	}}
	return cmp.Or(m.find(nil), m.signal(sig))
}

// descendsOrHas is a look that finds every process that the command has started.
func descendsOrHas(p *Process) func(pid int, entry []byte) answer {
	return func(pid int, entry []byte) answer {
		if a := descends(p, pid); a != no {
			return a
		}
		return has(pid, entry)
	}
}

// markedLeft reports whether any process has the entry, or may have.
func markedLeft(entry string) bool {
	m := marked{entry: []byte(entry)}
	err := m.find(nil)
	return err != nil || len(m.found) > 0
}

// stopMarked stops all processes that have the entry and are not in the group, and returns them. The group has got
// SIGSTOP before. stopMarked signals a process only when all earlier ones have stopped. Otherwise a shell with
// job control could find its job stopped, and would act on that when it continues.
func stopMarked(entry string, group int) marked {
	m := marked{entry: []byte(entry)}
	end := time.Now().Add(standTime)
	all, _ := processes()
	for _, pid := range all {
		if isIn(group, pid) {
			untilStopped(pid, end)
		}
	}
	_ = m.find(func(k known) error {
		if isIn(group, k.pid) {
			return nil // was stopped with its group
		}
		defer untilStopped(k.pid, end)
		return k.signal(syscall.SIGSTOP)
	}) // watch kills a process that does not stop when the validity ends
	m.outside(group)
	return m
}

// processes returns the ids of all visible processes.
func processes() (pids []int, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// meet looks at a process. The answer is becoming if the process ends during the look and another gets its number.
func meet(pid int, entry []byte, look func(int, []byte) answer) (known, answer) {
	before, err := readStat(pid)
	if err != nil {
		return known{}, unread
	}
	a := look(pid, entry)
	if a != yes {
		return known{}, a
	}
	after, err := readStat(pid)
	switch {
	case err != nil:
		return known{}, unread
	case beganOf(before) != beganOf(after):
		return known{}, becoming
	default:
		return known{pid, beganOf(after)}, yes
	}
}

// has reports whether the process has exactly this entry in its environment.
func has(pid int, entry []byte) answer {
	for until := time.Now().Add(execTime); ; <-time.After(time.Millisecond) {
		environ, err := environment(pid)
		switch {
		case unreadable(err):
			return unread
		case err != nil: // gone, or another user's
			return no
		case len(environ) > 0:
			for e := range bytes.SplitSeq(environ, []byte{0}) {
				if bytes.Equal(e, entry) {
					return yes
				}
			}
			return no
		case !execs(pid):
			return no
		case time.Now().After(until):
			return becoming
		}
	}
}

// environment reads the environment in one piece. If it took several, and the process became another program in
// between, the later pieces would be missing.
func environment(pid int) ([]byte, error) {
	fd, err := syscall.Open(fmt.Sprintf("/proc/%d/environ", pid), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	for size := 1 << 14; ; size *= 4 {
		environ := make([]byte, size)
		switch n, err := syscall.Pread(fd, environ, 0); {
		case err != nil:
			return nil, err
		case n < size:
			return environ[:n], nil
		}
	}
}

// execs reports whether a process with an empty environment is in the middle of an exec, or was when its environment
// was read. Such a process has memory, which a kernel thread and an ended process do not have. It has no place for an
// environment yet, or by now an environment that is not empty.
func execs(pid int) bool {
	const size, environBegin, environEnd = 20, 47, 48
	fields, err := readStat(pid)
	if err != nil {
		return true
	}
	if len(fields) <= environEnd || bytes.ContainsAny(fields[state], "ZX") || string(fields[size]) == "0" {
		return false
	}
	return string(fields[environEnd]) == "0" || !bytes.Equal(fields[environBegin], fields[environEnd])
}

// state, parent and start are fields of statOf.
const state, parent, start = 0, 1, 19

// statOf returns the fields of proc_pid_stat(5) after the name; none of a process that is gone or hidden, or that can't
// be read now.
func statOf(pid int) [][]byte {
	fields, _ := readStat(pid)
	return fields
}

// readStat is statOf with an error if the process can't be read now.
func readStat(pid int) (fields [][]byte, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if unreadable(err) {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr // it is gone
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]), nil
}

// beganOf returns when the process of these fields of statOf started.
func beganOf(fields [][]byte) string {
	if len(fields) <= start {
		return ""
	}
	return string(fields[start])
}

// unreadable reports that err, from a file of a process, says nothing about the process: this program or the system has
// no descriptor or no memory left. Other errors say that it is gone or another user's.
func unreadable(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN},
		func(is error) bool { return errors.Is(err, is) })
}

// untilStopped waits until a process has stopped or ended, at most until end. A process that waits for a disk
// stops only when the disk has answered.
func untilStopped(pid int, end time.Time) {
	for time.Now().Before(end) {
		if fields := statOf(pid); len(fields) == 0 || bytes.ContainsAny(fields[state], "TtZX") {
			return
		}
		time.Sleep(200 * time.Microsecond) //nolint:forbidigo // the kernel tells nobody but the parent
	}
}
