//go:build unix && !linux

package process

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

// tie puts the child into a new process group, so that Ctrl-C at the terminal does not reach the server. Only Linux
// can tie the server's life to its parent's. Here a server outlives a parent that was killed before it called Stop.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// killGroup ends the process and its children, such as the child that writes the server's file.
func killGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGKILL) }

func isStopped(pid int, _ bool) (bool, error) {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false, fmt.Errorf("process %d: ps: %w", pid, err)
	}
	return strings.HasPrefix(strings.TrimSpace(string(state)), "T"), nil
}
