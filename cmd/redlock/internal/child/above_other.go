//go:build !linux

package child

// Above reports whether another process with this program's name started this program, directly or through others. Only
// Linux can tell.
func Above() bool { return false }
