//go:build linux

package boottime

import "time"

// ClocksApart is the precision of the boot clock.
const ClocksApart = clocksApart

// NewBootClock returns a boot clock that reads other clocks than the kernel's.
func NewBootClock(read func() (monotonic, wall time.Duration), ask func() (time.Duration, error)) func() time.Duration {
	return (&bootClock{read: read, ask: ask}).now
}
