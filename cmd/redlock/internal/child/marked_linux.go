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
	// standTime is how long to wait in all until processes stand still that were sent SIGSTOP.
	standTime = 200 * time.Millisecond
)

var errTooMany = errors.New("its processes go on starting other processes")

// marked are the processes with an entry in their environment, wherever they have gone: to another group, session or
// parent. A process inherits its environment from its creator, as it inherits its group, but timeout(1) and a shell's
// set -m change only the group.
//
// find opens each process before it reads the environment, and signals go to the opened process. So if the process ends
// in between and another gets its number, the signal does not hit the other one: find may have read the other's
// environment, but the signal finds no process. (A kernel before 5.3 can't open processes. There the time between
// reading and signalling is the only risk.) A redlock under this one has the entry too, as every process that the
// command starts. Its watch and its command do not have it: they get from that redlock the signal that they get when
// the group is signalled. No older process can have the entry, because it is a secret of this run.
//
// A process is out of reach if it has removed the entry from its environment (env -i, sudo) or overwritten it, as a
// program may that changes its title. A process that has become another user is also out of reach, because its
// environment can't be read.
type marked struct {
	entry []byte
	open  []*os.Process
	look  func(pid int, entry []byte) answer // nil: has
}

// answer says whether a process has the entry.
type answer uint8

const (
	no answer = iota
	yes
	becoming // not known: the process is in the middle of an exec
)

// find opens the processes that have the entry. Unless each is nil, it calls each for every process as soon as it finds
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
func (m *marked) find(each func(*os.Process) error) error {
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
		for _, pid := range processes() {
			if looked[pid] {
				continue
			}
			p, sure := openMarked(pid, m.entry, look)
			found = found || p != nil || !sure || !listed[pid]
			looked[pid], listed[pid] = sure, true
			if p == nil {
				continue
			}
			m.open = append(m.open, p)
			if each != nil {
				failed = cmp.Or(failed, each(p))
			}
		}
		switch {
		case found:
		case again:
			return failed
		default:
			again, looked = true, map[int]bool{os.Getpid(): true}
			for _, p := range m.open {
				looked[p.Pid] = true
			}
		}
	}
	return cmp.Or(failed, errTooMany)
}

// signal sends sig to all found processes, the last one first: later processes are mostly children of earlier ones.
func (m *marked) signal(sig os.Signal) (failed error) {
	for _, p := range slices.Backward(m.open) {
		failed = cmp.Or(failed, signalOpen(p, sig))
	}
	return failed
}

func (m *marked) forget() {
	for _, p := range m.open {
		_ = p.Release() // frees a descriptor
	}
	m.open = nil
}

func (m *marked) outside(group int) {
	m.open = slices.DeleteFunc(m.open, func(p *os.Process) bool {
		in := isIn(group, p.Pid)
		if in {
			_ = p.Release()
		}
		return in
	})
}

// killMarked kills all processes that have the entry, and all that look finds.
func killMarked(entry string, look func(pid int, entry []byte) answer) error {
	m := marked{entry: []byte(entry), look: look}
	defer m.forget()
	return m.find(func(p *os.Process) error { return signalOpen(p, syscall.SIGKILL) })
}

// askMarked sends a signal to end, and SIGCONT, to all processes that have the entry and are not in the group. It finds
// them all first, so it does not signal processes that start later for a clean-up.
func askMarked(entry string, group int, sig os.Signal) error {
	m := marked{entry: []byte(entry)}
	defer m.forget()
	failed := m.find(nil)
	m.outside(group)
	return cmp.Or(failed, m.signal(sig), m.signal(syscall.SIGCONT))
}

// signalLeft sends sig to the command's processes that are left: those with its mark or in its group. A redlock among
// them passes the signal on to its own command.
func (p *Process) signalLeft(sig os.Signal) error {
	m := marked{entry: []byte(p.mark), look: func(pid int, entry []byte) answer {
		if isIn(p.pid, pid) && descends(pid) {
			return yes
		}
		return has(pid, entry)
	}}
	defer m.forget()
	return cmp.Or(m.find(nil), m.signal(sig))
}

// descendsOrHas finds every process that the command has started.
func descendsOrHas(pid int, entry []byte) answer {
	if descends(pid) {
		return yes
	}
	return has(pid, entry)
}

// markedLeft reports whether any process has the entry.
func markedLeft(entry string) bool {
	m := marked{entry: []byte(entry)}
	defer m.forget()
	_ = m.find(nil) // so many are some
	return len(m.open) > 0
}

// stopMarked stops all processes that have the entry and are not in the group, and returns them. The group has been
// sent SIGSTOP already. stopMarked signals a process only after all earlier ones stand still. Otherwise a shell with
// job control could find its job stopped, and would act on that when it continues.
func stopMarked(entry string, group int) marked {
	m := marked{entry: []byte(entry)}
	end := time.Now().Add(standTime)
	for _, pid := range processes() {
		if isIn(group, pid) {
			untilStopped(pid, end)
		}
	}
	_ = m.find(func(p *os.Process) error {
		if isIn(group, p.Pid) {
			return nil // was stopped with its group
		}
		defer untilStopped(p.Pid, end)
		return signalOpen(p, syscall.SIGSTOP)
	}) // watch kills a process that does not stop when the validity ends
	m.outside(group)
	return m
}

func signalOpen(p *os.Process, sig os.Signal) error {
	err := p.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// processes returns the ids of all visible processes; none without /proc.
func processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // of an error, as many as there are
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// openMarked opens the process if it has exactly this entry in its environment; otherwise it returns nil. sure is false
// for a process in the middle of an exec.
func openMarked(pid int, entry []byte, look func(int, []byte) answer) (p *os.Process, sure bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, true
	}
	has := look(pid, entry)
	if has == yes {
		return p, true
	}
	_ = p.Release()
	return nil, has == no
}

// has reports whether the process has exactly this entry in its environment.
func has(pid int, entry []byte) answer {
	for until := time.Now().Add(execTime); ; <-time.After(time.Millisecond) {
		environ, err := environment(pid)
		switch {
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
	fields := statOf(pid)
	if len(fields) <= environEnd || bytes.ContainsAny(fields[state], "ZX") || string(fields[size]) == "0" {
		return false
	}
	return string(fields[environEnd]) == "0" || !bytes.Equal(fields[environBegin], fields[environEnd])
}

// state and parent are fields of statOf.
const state, parent = 0, 1

// statOf returns the fields of proc_pid_stat(5) after the name; none of a process that is gone or hidden.
func statOf(pid int) [][]byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}

// untilStopped waits until a process stands still or has ended, but not beyond end. A process that waits for a disk
// stops only when the disk has answered.
func untilStopped(pid int, end time.Time) {
	for time.Now().Before(end) {
		if fields := statOf(pid); len(fields) == 0 || bytes.ContainsAny(fields[state], "TtZX") {
			return
		}
		time.Sleep(200 * time.Microsecond) //nolint:forbidigo // the kernel tells nobody but the parent
	}
}
