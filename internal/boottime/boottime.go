// Package boottime tells a time that never goes back, does not follow the wall clock and, where the operating system
// can tell, counts the time during which the machine is suspended.
package boottime

import "time"

// Now returns the time since a moment that is fixed while the process runs. It is safe for concurrent use.
func Now() time.Duration { return sinceBoot() }
