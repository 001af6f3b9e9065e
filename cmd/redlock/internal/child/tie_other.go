//go:build unix && !linux && !aix

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// getModes reads a terminal's modes. setModes sets them without waiting for pending output.
const getModes, setModes = unix.TIOCGETA, unix.TIOCSETA

// tieToParent does nothing: only Linux can.
func tieToParent(*syscall.SysProcAttr) {}

// self is this program's own file.
func self() (string, error) { return os.Executable() }
