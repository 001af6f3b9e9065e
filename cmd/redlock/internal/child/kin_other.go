//go:build !linux

package child

import "errors"

// KinGone fails: only Linux can wait for processes that are not children.
func KinGone(int) (<-chan struct{}, error) { return nil, errors.ErrUnsupported }
