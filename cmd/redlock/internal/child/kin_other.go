//go:build !linux

package child

import "errors"

// KinGone fails: only Linux tells of processes that are no children.
func KinGone(int) (<-chan struct{}, error) { return nil, errors.ErrUnsupported }
