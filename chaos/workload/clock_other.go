//go:build !linux

package workload

import "time"

// Monotonic reads a clock that all processes of the machine share, in nanoseconds. Here that is the wall clock, so a
// run must not have it set.
func Monotonic() int64 { return time.Now().UnixNano() }
