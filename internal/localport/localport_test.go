package localport_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestReservedPortsAreDistinctFreeAndBelowTheEphemeralRange(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port, err := localport.Reserve()
		must(t, err)
		t.Cleanup(func() {
			must(t, port.Release())
		})
		if seen[port.Number()] {
			t.Fatalf("port %d was handed out twice", port.Number())
		}
		seen[port.Number()] = true
		if port.Number() >= 32768 {
			t.Fatalf("port %d lies in the ephemeral range", port.Number())
		}
		listener, err := net.Listen("tcp", port.Addr())
		if err != nil {
			t.Fatalf("a reserved port can't be listened on: %v", err)
		}
		must(t, listener.Close())
	}
}

func TestAKeptPortIsRefusedUntilItIsReleased(t *testing.T) {
	port, err := localport.Reserve()
	must(t, err)
	if _, err := localport.ReserveNumber(port.Number()); !errors.Is(err, localport.ErrTaken) {
		t.Fatalf("reserving a kept port: got %v, want ErrTaken", err)
	}
	must(t, port.Release())
	again, err := localport.ReserveNumber(port.Number())
	if err != nil {
		t.Fatalf("reserving a released port: %v", err)
	}
	must(t, again.Release())
}

func TestAPortInUseIsRefusedAndNotKept(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	number := listener.Addr().(*net.TCPAddr).Port
	if _, err := localport.ReserveNumber(number); !errors.Is(err, localport.ErrTaken) {
		t.Fatalf("reserving a port in use: got %v, want ErrTaken", err)
	}
	must(t, listener.Close())
	port, err := localport.ReserveNumber(number)
	if err != nil {
		t.Fatalf("the refused attempt kept the port: %v", err)
	}
	must(t, port.Release())
}

func TestNumbersThatAreNotPortsAreRefused(t *testing.T) {
	for _, number := range []int{-1, 0, 65536} {
		if _, err := localport.ReserveNumber(number); err == nil {
			t.Errorf("%d was accepted as a port", number)
		}
	}
}

// Between fork and exec a child has copies of the listeners that its parent is closing.
func TestAPortIsListenedOnAgainWhenTheLastCopyIsClosed(t *testing.T) {
	port, err := localport.Reserve()
	must(t, err)
	defer func() { _ = port.Release() }()
	first, err := localport.Listen(port.Addr())
	must(t, err)
	child, err := first.(*net.TCPListener).File()
	must(t, err)
	must(t, first.Close())
	if _, err := localport.Listen(port.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("with a copy of the listener: %v; this test shows nothing", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = child.Close() })
	second, err := localport.Listen(port.Addr())
	must(t, err)
	must(t, second.Close())
}
