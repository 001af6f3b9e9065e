//go:build !linux

package fleet

// exactTimers does nothing on systems with unknown timer delays.
func exactTimers() (stop func()) { return func() {} }
