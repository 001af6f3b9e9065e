//go:build !unix && !windows

package term

import "errors"

func size(uintptr) (width, height int, err error) { return 0, 0, errors.ErrUnsupported }
