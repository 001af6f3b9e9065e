// Package soak tells tests whether they have the time for all of their cases: REDLOCK_SOAK=1 in the environment says
// so.
package soak

import "os"

// On reports whether REDLOCK_SOAK is 1.
func On() bool { return os.Getenv("REDLOCK_SOAK") == "1" }

// Or returns all if there is time, and otherwise usual.
func Or[T any](usual, all T) T {
	if On() {
		return all
	}
	return usual
}

// Share reports whether this case is tried. With time every case is, otherwise the first of every n.
func Share(number, n int) bool { return On() || number%n == 0 }
