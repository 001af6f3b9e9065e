//go:build !linux

package boottime

import "time"

var started = time.Now()

// sinceBoot is Go's monotonic clock. Whether it counts suspended time is up to the operating system: it does on
// Windows, and does not on macOS and the BSDs. There, a process that holds a lock while the machine sleeps may believe
// in it for as long after waking up as it had left before; fencing tokens are what protects the resource then.
func sinceBoot() time.Duration { return time.Since(started) }
