package workload

import (
	"errors"
	"syscall"
)

const (
	sigStop = 0
	sigCont = 0
)

func (c *Child) signal(int) error { return errors.ErrUnsupported }

func childAttributes() *syscall.SysProcAttr { return nil }
