//go:build unix

package wire

import (
	"fmt"
	"syscall"
)

const canPeek = true

// nothingToRead reports that the other side has neither closed the connection nor sent anything.
func nothingToRead(fd uintptr) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n <= 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR)
}

// writeNow writes what a socket takes without waiting, and says how much that is. Of an error, whoever writes the rest hears.
func writeNow(fd uintptr, b []byte) int {
	n, _ := syscall.Write(int(fd), b)
	return max(0, n)
}

// setLinger has a socket closed with a reset. One that knows no such thing, which is none of TCP, is closed as ever.
func setLinger(fd uintptr) error {
	err := syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	if err != nil && err != syscall.ENOPROTOOPT {
		return fmt.Errorf("set linger: %w", err)
	}
	return nil
}
