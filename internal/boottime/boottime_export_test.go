//go:build linux

package boottime

import "time"

// ClocksApart is how exact the boot clock is.
const ClocksApart = clocksApart

// NewBootClock is a boot clock that reads others than the kernel's.
func NewBootClock(read func() (monotonic, wall time.Duration), ask func() (time.Duration, error)) func() time.Duration {
	return (&bootClock{read: read, ask: ask}).now
}
