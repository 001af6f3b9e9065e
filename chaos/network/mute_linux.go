package network

import (
	"net"
	"syscall"
)

// shortenBacklog leaves room for a single connection that is not yet accepted.
func shortenBacklog(l net.Listener) error {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), 0) })
	if err == nil {
		err = failed
	}
	return err
}
