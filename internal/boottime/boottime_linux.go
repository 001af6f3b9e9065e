package boottime

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_BOOTTIME, which goes on while the machine is suspended. Go's own monotonic clock stands still
// then (golang/go#24595), and a holder would wake up believing in a lock that has long expired.
func sinceBoot() time.Duration { return boot.now() }

var boot = bootClock{read: readClocks, ask: askBootTime}

// bootClock tells CLOCK_BOOTTIME without asking the kernel each time: that is a system call, where Go's time.Now reads
// the monotonic and the wall clock without one. The boot clock is the monotonic one plus all the time spent suspended, so
// it need only be asked when some of that may have been added. Then the wall clock, which a suspension does not stop
// either, has run away from the monotonic one; and so it has when somebody set it, which costs one question in vain. What
// would go unnoticed is a wall clock set back, after a suspension and before anybody here reads the time, by just as
// long as the suspension was, to the millisecond.
type bootClock struct {
	read func() (monotonic, wall time.Duration)
	ask  func() (time.Duration, error)
	last atomic.Pointer[bootReading]
}

// bootReading is what was learnt when the kernel was asked last.
type bootReading struct {
	suspended time.Duration // the boot clock less the monotonic one
	apart     time.Duration // the wall clock less the monotonic one
}

// clocksApart is by how much the wall clock may run away from the monotonic one before the kernel is asked, and how far
// the answer may be off: a twentieth of what every validity is shortened by on account of expiry alone.
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
			return monotonic + learnt.suspended // interrupted meanwhile: too inexact to count with from now on
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
