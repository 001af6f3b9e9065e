//go:build !linux

package fleet

// exactTimers does nothing where it is not known how late timers are.
func exactTimers() (stop func()) { return func() {} }
