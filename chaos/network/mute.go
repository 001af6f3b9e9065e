package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// canSilence returns nil where a listener with a full backlog leaves those who dial without an answer. Linux drops
// their packets; other systems may refuse them.
func canSilence() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("network: dialling hangs before a full backlog on Linux only: %w", errors.ErrUnsupported)
	}
	return nil
}

// muteListener listens, but accepts no connection, and its backlog is full.
type muteListener struct {
	listener net.Listener
	cancel   context.CancelFunc
	fillers  sync.WaitGroup
}

// hangs is how long a dial must go without an answer to count as hanging. On loopback it takes microseconds.
const hangs = 200 * time.Millisecond

// listenMute listens and fills its own backlog until dialling hangs.
func listenMute(addr string) (*muteListener, error) {
	deadline := time.Now().Add(patience / 2)
	l, err := net.Listen("tcp", addr)
	for ; err != nil && time.Now().Before(deadline); l, err = net.Listen("tcp", addr) {
		<-time.After(5 * time.Millisecond) // the proxy that was there lets go of its port
	}
	if err != nil {
		return nil, fmt.Errorf("network: syn-drop: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &muteListener{listener: l, cancel: cancel}
	if err := shortenBacklog(l); err != nil {
		m.close()
		return nil, fmt.Errorf("network: syn-drop: %w", err)
	}
	for range 16 {
		if !m.fill(ctx) {
			return m, nil
		}
	}
	m.close()
	return nil, errors.New("network: syn-drop: all who dialled were accepted")
}

// fill dials once and reports whether that was answered.
func (m *muteListener) fill(ctx context.Context) bool {
	answered := make(chan struct{})
	m.fillers.Go(func() {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", m.listener.Addr().String())
		close(answered)
		if err != nil {
			return
		}
		<-ctx.Done()
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
	select {
	case <-answered:
		return true
	case <-time.After(hangs):
		return false
	}
}

// close ends the listener. The next listener, or none, then refuses the clients that wait for an answer. m may be nil.
func (m *muteListener) close() {
	if m == nil {
		return
	}
	m.cancel()
	_ = m.listener.Close()
	m.fillers.Wait()
}
