//go:build !unix

package process

import (
	"errors"
	"os"
	"os/exec"
)

// unsupported is a signal that no system delivers: Pause and Resume fail, everything else works.
type unsupported string

func (s unsupported) String() string { return string(s) }
func (unsupported) Signal()          {}

const (
	sigStop = unsupported("stop")
	sigCont = unsupported("continue")
)

var (
	_ os.Signal = sigStop
	_ os.Signal = sigCont
)

func tie(*exec.Cmd) {}

// killGroup ends the process; this system has no process groups.
func killGroup(leader *os.Process) error { return leader.Kill() }

func isStopped(int, bool) (bool, error) { return false, errors.ErrUnsupported }
