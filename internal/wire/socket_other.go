//go:build !unix

package wire

// canPeek is false: on these systems a socket shows its bytes only when it is read.
const canPeek = false

func nothingToRead(uintptr) bool { return true }

// setLinger does nothing: the standard library's connections have a SetLinger.
func setLinger(uintptr) error { return nil }

func writeNow(uintptr, []byte) int { return 0 }
