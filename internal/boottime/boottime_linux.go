package boottime

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_BOOTTIME, which continues while the machine is suspended. Go's own monotonic clock stops then
// (golang/go#24595), and a holder would wake up believing in a lock that has long expired.
func sinceBoot() time.Duration { return boot.now() }

var boot = bootClock{read: readClocks, ask: askBootTime}

// bootClock reads CLOCK_BOOTTIME without a system call each time. Go's time.Now reads the monotonic and the wall
// clock without one. The boot clock is the monotonic clock plus all the time spent suspended, so the kernel need only
// be asked when the machine may have been suspended. After a suspension the wall clock, which continues, has run away
// from the monotonic clock. The same happens when the wall clock is set, which costs one needless question.
//
// One case goes unnoticed: after a suspension, and before this process reads the time, the wall clock is set back by
// exactly the length of the suspension, to a tenth of a millisecond.
type bootClock struct {
	read func() (monotonic, wall time.Duration)
	ask  func() (time.Duration, error)
	last atomic.Pointer[bootReading]
}

// bootReading is the result of the last question to the kernel.
type bootReading struct {
	suspended time.Duration // the boot clock less the monotonic one
	apart     time.Duration // the wall clock less the monotonic one
}

// clocksApart is how far the wall clock may run away from the monotonic clock before the kernel is asked, and how
// wrong the clock may be. It is a twentieth of the time by which every validity is shortened because of expiry alone.
const clocksApart = 100 * time.Microsecond

func (b *bootClock) now() time.Duration {
	for {
		monotonic, wall := b.read()
		last := b.last.Load()
		if last != nil && (wall-monotonic-last.apart).Abs() < clocksApart {
			return monotonic + last.suspended
		}
		now, err := b.ask()
		if err != nil {
			return monotonic // a kernel before 2.6.39, or a filter on system calls
		}
		after, _ := b.read()
		learnt := &bootReading{suspended: now - monotonic, apart: wall - monotonic}
		if last != nil && learnt.suspended < last.suspended+clocksApart {
			learnt.suspended = last.suspended // there was no suspension, and the time never goes back
		}
		if after-monotonic > clocksApart {
			return monotonic + learnt.suspended // interrupted between the readings: too inexact to keep
		}
		if b.last.CompareAndSwap(last, learnt) {
			return monotonic + learnt.suspended
		}
	}
}

var started = time.Now()

// readClocks reads Go's two clocks at once.
func readClocks() (monotonic, wall time.Duration) {
	now := time.Now()
	return now.Sub(started), time.Duration(now.UnixNano())
}

func askBootTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano()), err
}
