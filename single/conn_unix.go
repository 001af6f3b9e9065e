//go:build unix

package single

import "syscall"

// peerClosed reports that the other side has closed the connection, or that something came that nobody asked for.
func peerClosed(raw syscall.RawConn) bool {
	closed := false
	err := raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = n > 0 || err == nil || err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
		return true // do not wait
	})
	return closed || err != nil
}
