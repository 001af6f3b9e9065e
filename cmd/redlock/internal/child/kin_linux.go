package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// kinAgain is the pause before another look when no process was seen: a process may have started another one and ended
// in between.
const kinAgain = 10 * time.Millisecond

// ErrLeadsNothing says that nothing tells the children of the process from other processes.
var ErrLeadsNothing = errors.New("leads neither a session nor a process group, so what it starts can't be told from " +
	"others; start it by setsid")

// KinGone returns a channel that is closed when the process and its kin have ended. If the process leads a session, its
// kin are the session's processes. If it leads only a process group, they are the group's. This program does not count,
// nor do other redlock processes that hold a lock for the same process, nor ended processes that were not reaped.
// KinGone returns an error if there is no such process, or if it leads nothing. A goroutine waits until the channel is
// closed or the program ends.
func KinGone(pid int) (<-chan struct{}, error) {
	const group, session = 2, 3
	fields := statOf(pid)
	id := strconv.Itoa(pid)
	field := session
	switch {
	case len(fields) <= session || pid == os.Getpid():
		return nil, os.ErrProcessDone
	case string(fields[session]) == id:
	case string(fields[group]) == id:
		field = group
	default:
		return nil, ErrLeadsNothing
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for looks := 0; looks < 2; looks++ {
			for kin, err := kinOf(field, id); kin != 0 || err != nil; kin, err = kinOf(field, id) {
				looks = 0
				if err != nil {
					<-time.After(kinAgain)
				} else {
					untilEnded(kin)
				}
			}
			<-time.After(kinAgain)
		}
	}()
	return gone, nil
}

// kinOf returns a living process with this value in this field of statOf; 0 if there is none. The error says that there
// may be one, because some can't be read.
func kinOf(field int, id string) (pid int, err error) {
	own := commOf(os.Getpid())
	all, err := processes()
	for _, pid := range all {
		fields, unread := readStat(pid)
		err = cmp.Or(err, unread)
		if pid == os.Getpid() || len(fields) <= field || string(fields[field]) != id ||
			bytes.ContainsAny(fields[state], "ZX") {
			continue
		}
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if commOf(pid) != own || !bytes.Contains(words, []byte("\x00hold\x00")) {
			return pid, nil
		}
	}
	return 0, err
}

// untilEnded waits for a process that is not a child.
func untilEnded(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil { // it has ended, or the kernel is older than 5.3
		<-time.After(kinAgain)
		return
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Above reports whether another process with this program's name started this program, directly or through others.
func Above() bool {
	own := commOf(os.Getpid())
	for pid := os.Getppid(); pid > 0; pid = parentOf(pid) {
		if own != "" && commOf(pid) == own {
			return true
		}
	}
	return false
}

// commOf returns the name of a process's program; "" if the process is gone or hidden.
func commOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSuffix(string(name), "\n")
}

// parentOf returns 0 if there is no parent, or none that is visible from here.
func parentOf(pid int) int {
	fields := statOf(pid)
	if len(fields) <= parent {
		return 0
	}
	above, _ := strconv.Atoi(string(fields[parent])) // it is a number
	return above
}
