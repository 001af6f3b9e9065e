package workload

import (
	"errors"
	"os"
	"syscall"
)

// StopProcess is not available on Windows: the error matches errors.ErrUnsupported.
func StopProcess(*os.Process) error { return errors.ErrUnsupported }

// ContinueProcess is not available on Windows either.
func ContinueProcess(*os.Process) error { return errors.ErrUnsupported }

func childAttributes() *syscall.SysProcAttr { return nil }
