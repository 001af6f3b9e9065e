package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// tie makes the kernel kill the child with its parent (see Start). It also puts the child into a new process group,
// so that Ctrl-C at the terminal reaches the program that runs the server, and not the server.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
}

// killGroup ends the process and its children, such as the child that writes the server's file.
func killGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// isStopped reads the states of the process's threads. With all it reports whether every thread is stopped, otherwise
// whether any is.
func isStopped(pid int, all bool) (bool, error) {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	if len(stats) == 0 {
		return false, fmt.Errorf("process %d: no threads in /proc", pid)
	}
	for _, path := range stats {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // this thread has just ended
		}
		// "pid (name) state ...": name may contain blanks and parentheses.
		end := bytes.LastIndexByte(line, ')')
		if end < 0 || end+2 >= len(line) {
			return false, fmt.Errorf("process %d: can't read %s", pid, path)
		}
		if stopped := line[end+2] == 'T'; stopped != all {
			return stopped, nil
		}
	}
	return all, nil
}
