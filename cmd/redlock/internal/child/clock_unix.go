//go:build unix && !linux && !aix

package child

import "golang.org/x/sys/unix"

// clock does not jump with the time of day.
const clock = unix.CLOCK_MONOTONIC
