//go:build unix && !linux && !aix

package child

import (
	"os"
	"syscall"
)

// tieToParent does nothing: only Linux can.
func tieToParent(*syscall.SysProcAttr) {}

// self is this program's own file.
func self() (string, error) { return os.Executable() }
