//go:build unix && !linux

package child

import "syscall"

// tieToParent does nothing: only Linux can.
func tieToParent(*syscall.SysProcAttr) {}
