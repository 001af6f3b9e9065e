package workload

import "syscall"

// childAttributes: a new process group, so that Ctrl-C in a terminal reaches only the parent, which
// ends its children in order; and no child outlives its parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
