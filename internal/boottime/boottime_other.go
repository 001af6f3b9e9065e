//go:build !linux

package boottime

import "time"

var started = time.Now()

// sinceBoot is Go's monotonic clock. Whether it counts suspended time is up to the operating system: it does on
// Windows, and does not on macOS and the BSDs. There, a process that holds a lock while the machine sleeps may rely
// on it after waking up, for as long as the lock had left before. Only fencing tokens protect the resource then.
func sinceBoot() time.Duration { return time.Since(started) }
