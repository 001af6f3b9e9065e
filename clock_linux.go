package redlock

import (
	"time"

	"golang.org/x/sys/unix"
)

// started is where time.Since counts from should the kernel refuse to tell the time.
var started = time.Now()

// sinceBoot reads CLOCK_BOOTTIME, which goes on while the machine is suspended. Go's own monotonic clock stands still
// then (golang/go#24595), and a holder would wake up believing in a lock that has long expired.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(started) // a kernel before 2.6.39, or a filter on system calls
	}
	return time.Duration(ts.Nano())
}
