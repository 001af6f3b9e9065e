//go:build unix

package workload

import "syscall"

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

func (c *Child) signal(sig syscall.Signal) error { return c.cmd.Process.Signal(sig) }
