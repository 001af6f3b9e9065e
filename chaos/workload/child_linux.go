package workload

import "syscall"

// childAttributes: a process group of its own, so that Ctrl-C in a terminal reaches only the parent, which ends its
// children in order; and no child without a parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
