//go:build unix && !aix && !linux

package child

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// getModes reads a terminal's modes. setModes sets them without waiting for pending output.
const getModes, setModes = unix.TIOCGETA, unix.TIOCSETA

// tieToParent does nothing: only Linux can.
func tieToParent(*syscall.SysProcAttr) {}

// self is this program's own file.
func self() (string, error) { return os.Executable() }

// clock does not jump with the time of day.
const clock = unix.CLOCK_MONOTONIC

// groupLooks is the interval between looks whether a group still has processes. Only Linux can make this program the
// parent of orphans.
const groupLooks = 50 * time.Millisecond

func adopt() error { return nil }

func startOwn(start func() (pid int, err error)) error {
	_, err := start()
	return err
}

// descendsOrHas is for killMarked, which finds nothing here.
func descendsOrHas(*Process) any { return nil }

// wait waits for the command, reports its stops, and waits for the rest of its group.
func (p *Process) wait() {
	defer close(p.gone)
	p.end(p.waitForCommand())
	for groupLeft(p.pid) {
		<-time.After(groupLooks)
	}
}

func (p *Process) waitForCommand() Status {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // other code has reaped it, which must not happen
			return Status{Code: 1}
		case ws.Stopped():
			p.tellStop(ws.StopSignal())
		default:
			return statusOf(ws)
		}
	}
}

func (p *Process) signalLeft(sig os.Signal) error { return signalGroup(p.pid, sig) }

// Left names processes that the command has left. Only Linux can list them.
func (p *Process) Left(int) (names []string, n int) { return nil, 1 }

// Group is the id of the command's process group.
func (p *Process) Group() int { return p.pid }

// marked are processes that have an entry in their environment. This system does not show it.
type marked struct{}

func (*marked) signal(os.Signal) error { return nil }

func killMarked(string, any) error           { return nil }
func askMarked(string, int, os.Signal) error { return nil }
func markedLeft(string) bool                 { return false }
func stopMarked(string, int) marked          { return marked{} }
