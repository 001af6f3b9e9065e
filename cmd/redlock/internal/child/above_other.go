//go:build !linux

package child

// Above says whether this program was started, through whomever, by another process of its name. That is only known on
// Linux.
func Above() bool { return false }
