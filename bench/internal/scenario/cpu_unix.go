//go:build unix

package scenario

import (
	"fmt"
	"syscall"
	"time"
)

// processorTime returns the processor time of this process so far, on all cores, in user mode and in the kernel.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
