//go:build !linux

package scenario

import "fmt"

// keepOn is only for Linux.
func keepOn(int, ...int) (undo func() error, err error) {
	return nil, fmt.Errorf("%w: processes are kept on cores on Linux only", ErrSkipped)
}
