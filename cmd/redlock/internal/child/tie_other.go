//go:build unix && !linux && !aix

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// These read a terminal's modes, and set them without waiting for what is still to be shown.
const getModes, setModes = unix.TIOCGETA, unix.TIOCSETA

// tieToParent does nothing: only Linux can.
func tieToParent(*syscall.SysProcAttr) {}

// self is this program's own file.
func self() (string, error) { return os.Executable() }
