//go:build unix

package workload

import (
	"os"
	"syscall"
)

// StopProcess stops a process until ContinueProcess (SIGSTOP, SIGCONT).
func StopProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// ContinueProcess lets a stopped process go on.
func ContinueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
