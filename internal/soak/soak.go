// Package soak tells tests whether they have the time for all of their cases: REDLOCK_SOAK=1 in the environment says
// so.
package soak

import (
	"os"
	"time"
)

// On reports whether REDLOCK_SOAK is 1.
func On() bool { return os.Getenv("REDLOCK_SOAK") == "1" }

// Or returns all if there is time, and otherwise usual.
func Or[T any](usual, all T) T {
	if On() {
		return all
	}
	return usual
}

// Today reports whether this case is tried. With time every case is, otherwise one case in n, each day the next.
func Today(number, n int) bool { return On() || number%n == time.Now().YearDay()%n }
