package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// orphanMaker, set in the environment, makes the test binary start a server, print its pid and wait to be killed.
const orphanMaker = "REDISTEST_ORPHAN_MAKER"

func TestMain(m *testing.M) {
	if os.Getenv(orphanMaker) != "" {
		os.Exit(makeOrphan())
	}
	goleak.VerifyTestMain(m)
}

func makeOrphan() int {
	server, err := redistest.Run(context.Background(), redistest.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(server.Pid())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until killed
	return 0
}

// fakeTB is a TB that records the test's fate and does not fail this test.
type fakeTB struct {
	errors, fatals, skips []string
	cleanups              []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Name() string     { return "TestFake" }
func (f *fakeTB) Cleanup(g func()) { f.cleanups = append(f.cleanups, g) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatals = append(f.fatals, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (f *fakeTB) Skipf(format string, args ...any) {
	f.skips = append(f.skips, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// run runs body like a test: in a new goroutine, with clean-ups afterwards.
func (f *fakeTB) run(body func(tb redistest.TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, cleanup := range slices.Backward(f.cleanups) {
				cleanup()
			}
		}()
		body(f)
	}()
	<-done
}

// exists reports whether the process exists. A zombie counts as gone.
func exists(tb testing.TB, pid int) bool {
	tb.Helper()
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " Z")
}

// dial opens a plain TCP connection to the server.
func dial(tb testing.TB, s *redistest.Server) net.Conn {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(tb testing.TB, conn net.Conn, command string) {
	tb.Helper()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		tb.Fatal(err)
	}
}

// receive reads one answer within the given time.
func receive(tb testing.TB, conn net.Conn, within time.Duration) (string, error) {
	tb.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		tb.Fatal(err)
	}
	buf := make([]byte, 128)
	n, err := conn.Read(buf)
	return string(buf[:n]), err
}

func set(tb testing.TB, s *redistest.Server, key string) {
	tb.Helper()
	if err := s.Client().Set(tb.Context(), key, "value", 0).Err(); err != nil {
		tb.Fatal(err)
	}
}

func has(tb testing.TB, s *redistest.Server, key string) bool {
	tb.Helper()
	_, err := s.Client().Get(tb.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		tb.Fatal(err)
	}
	return err == nil
}

var must = locktest.Must
