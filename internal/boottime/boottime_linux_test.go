package boottime_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-624411e5/redlock/internal/boottime"
)

// The clock counts the time during which the machine is suspended: it is CLOCK_BOOTTIME, not CLOCK_MONOTONIC.
func TestHazard24TheClockCountsSuspendedTime(t *testing.T) {
	read := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	before := read()
	now := boottime.Now()
	after := read()
	if exact := boottime.ClocksApart; now < before-exact || now > after+exact {
		t.Errorf("the clock says %v, CLOCK_BOOTTIME was %v before and %v after", now, before, after)
	}
}

// Three things move the kernel's clocks apart: passing time, suspensions, and setting the wall clock.
func TestHazard24TheKernelIsAskedWhenTheClocksRunApart(t *testing.T) {
	const exact = boottime.ClocksApart
	var monotonic, wall, suspended, interruption time.Duration
	asked, broken := 0, false
	clock := boottime.NewBootClock(
		func() (time.Duration, time.Duration) { return monotonic, wall },
		func() (time.Duration, error) {
			asked++
			if broken {
				return 0, unix.ENOSYS
			}
			monotonic += interruption
			wall += interruption
			return monotonic + suspended, nil
		},
	)
	last := time.Duration(0)
	check := func(what string, asks int, within time.Duration) {
		t.Helper()
		before := asked
		now := clock()
		if err := now - monotonic - suspended; err < -within || err > within || now < last || asked-before != asks {
			t.Errorf("%s: the time is %v and was %v, and should be %v; the kernel was asked %d times, not %d",
				what, now, last, monotonic+suspended, asked-before, asks)
		}
		last = now
	}
	pass := func(d time.Duration) { monotonic += d; wall += d }
	sleep := func(d time.Duration) { suspended += d; wall += d }

	wall = 56 * 365 * 24 * time.Hour
	sleep(time.Hour)
	check("the first reading", 1, 0)
	check("at once", 0, 0)
	pass(time.Minute)
	check("later", 0, 0)
	sleep(10 * time.Second)
	check("after a suspension", 1, 0)
	pass(time.Millisecond)
	check("a millisecond after that", 0, 0)
	wall -= time.Hour
	check("after the wall clock was set back", 1, 0)
	check("at once", 0, 0)
	wall += 2 * time.Hour
	sleep(time.Second)
	check("after it was set forward and the machine suspended", 1, 0)
	for range 20 { // each too short to be noticed, all together not
		sleep(exact / 4)
		clock()
	}
	check("after many short suspensions", 0, exact)
	interruption = 5 * time.Millisecond
	sleep(time.Minute)
	check("a reading that is interrupted", 1, interruption)
	check("and another one", 1, interruption)
	interruption = 0
	check("one that is not", 1, exact)
	check("and at once", 0, exact)
	broken, wall = true, wall+time.Hour
	if now := clock(); now != monotonic {
		t.Errorf("a kernel that does not tell: %v, want the monotonic clock's %v", now, monotonic)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		boottime.Now()
	}
}
