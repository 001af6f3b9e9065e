//go:build !linux

package child

import "errors"

// Above reports whether another process with this program's name started this program, directly or through others. Only
// Linux can tell.
func Above() bool { return false }

// KinGone fails: only Linux can wait for processes that are not children.
func KinGone(int) (<-chan struct{}, error) { return nil, errors.ErrUnsupported }
