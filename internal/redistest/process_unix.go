//go:build unix && !linux

package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// childAttributes: in a process group of its own, so that Ctrl-C at the terminal does not reach the server. Only Linux
// can tie the server's life to its parent's; here a server outlives a parent that was killed before it called Stop.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the process and what it has forked, such as a child that writes the server's file.
func killGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGKILL) }

func isStopped(pid int, _ bool) (bool, error) {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false, fmt.Errorf("process %d: ps: %w", pid, err)
	}
	return strings.HasPrefix(strings.TrimSpace(string(state)), "T"), nil
}
