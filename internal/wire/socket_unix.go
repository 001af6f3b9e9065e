//go:build unix

package wire

import (
	"fmt"
	"syscall"
)

const canPeek = true

// nothingToRead reports that the peer has neither closed the connection nor sent anything.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n <= 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
}

// writeNow writes as much as a socket takes without waiting, and returns how much that is. It drops an error: writing
// the rest will report it.
func writeNow(fd uintptr, b []byte) int {
	n, _ := syscall.Write(int(fd), b)
	return max(0, n)
}

// setLinger makes closing a socket reset it. A socket without this option, which is not TCP, is closed as usual.
func setLinger(fd uintptr) error {
	err := syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	if err != nil && err != syscall.ENOPROTOOPT {
		return fmt.Errorf("set linger: %w", err)
	}
	return nil
}
