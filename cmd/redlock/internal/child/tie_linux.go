package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// getModes reads a terminal's modes. setModes sets them without waiting for pending output.
const getModes, setModes = unix.TCGETS, unix.TCSETS

func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }

// self returns this program's own file, even after another version has replaced it.
func self() (string, error) { return "/proc/self/exe", nil }

// clock goes on while the machine is suspended.
const clock = unix.CLOCK_BOOTTIME
