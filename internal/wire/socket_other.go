//go:build !unix

package wire

// canPeek: here nothing tells what a socket has without reading it.
const canPeek = false

func nothingToRead(uintptr) bool { return true }

// setLinger does nothing: the standard library's connections have a SetLinger.
func setLinger(uintptr) error { return nil }

func writeNow(uintptr, []byte) int { return 0 }
