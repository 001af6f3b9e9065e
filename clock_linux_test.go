package redlock_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-624411e5/redlock"
)

// The clock counts the time during which the machine is suspended: it is CLOCK_BOOTTIME, not CLOCK_MONOTONIC.
func TestHazard24TheClockCountsSuspendedTime(t *testing.T) {
	read := func() time.Duration {
		var ts unix.Timespec
		must(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
		return time.Duration(ts.Nano())
	}
	before := read()
	now := redlock.SystemClock().Now()
	after := read()
	if now < before || now > after {
		t.Errorf("the clock says %v, CLOCK_BOOTTIME was %v before and %v after", now, before, after)
	}
}
