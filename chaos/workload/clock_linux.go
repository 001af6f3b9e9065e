package workload

import "golang.org/x/sys/unix"

// Monotonic reads the machine's monotonic clock in nanoseconds. All processes of a machine read the same clock, so
// that children can write times that the parent understands.
func Monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0 // can't happen: the clock and the address are valid
	}
	return ts.Nano()
}
