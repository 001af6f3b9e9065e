// Package redistest runs real redis-server processes for tests, benchmarks and chaos. Each has its own port,
// directory and process, and can be paused, killed and restarted with or without its data.
//
//	server := redistest.Start(t)                       // ended by the test's Cleanup
//	masters := redistest.StartN(t, 5, redistest.WithAOF())
//	server, err := redistest.Run(ctx, redistest.Config{}) // without a test; the caller calls Stop
//
// No process outlives its user. The test's Cleanup ends it, paused or not. On Linux the kernel kills it when the
// program that started it dies in any other way (its temporary directory then stays). Servers do not meet each
// other's clients: processes that use this package never share ports, even while a server is down.
package redistest

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/internal/process"
)

// TB is the part of testing.TB that this package uses. It is spelled out so that commands which only use Run do not
// link the testing package, and so that property tests can pass their own T.
type TB interface {
	Helper()
	Name() string
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Start starts one server and stops it when the test ends. Without a redis-server on PATH it calls [NothingTested].
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	return StartN(tb, 1, opts...)[0]
}

// Need is for tests that start servers without Start. If there is no server to start, it calls [NothingTested].
func Need(tb TB) {
	tb.Helper()
	if _, err := (Config{}).binary(); err != nil {
		NothingTested(tb, err)
	}
}

// StartN is Start for n servers, which start concurrently.
func StartN(tb TB, n int, opts ...Option) []*Server {
	tb.Helper()
	var cfg Config
	for _, opt := range opts {
		opt(&cfg)
	}
	servers, err := RunN(context.Background(), n, cfg)
	if errors.Is(err, ErrNoServer) {
		NothingTested(tb, err)
	}
	if err != nil {
		tb.Fatalf("start %d servers: %v", n, err)
	}
	for _, s := range servers {
		s.reportTo(func(err error) { tb.Errorf("%v", err) })
		tb.Cleanup(func() {
			_ = s.Stop()    // tells the test itself
			s.reportTo(nil) // a goroutine that outlives the test must not speak to it
		})
	}
	return servers
}

// WriteProgram writes a file that will be run. Until it returns, this process starts no other program: for a moment a
// new process has every file open, and a program that is open for writing cannot be run ("text file busy").
func WriteProgram(path string, content []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, mode)
}

// Meanwhile calls f again and again in a goroutine of its own. The test's Cleanup waits for the last call.
func Meanwhile(tb TB, f func()) {
	tb.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				f()
			}
		}
	}()
	tb.Cleanup(func() { close(stop); <-stopped })
}

// Eventually checks cond every 2 ms until it is true. After timeout it fails the test; the message has what, the name
// of the condition. Call it from the test's own goroutine. Inside a synctest bubble it takes virtual time.
func Eventually(tb TB, timeout time.Duration, cond func() bool, what string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if !process.Poll(ctx, cond) {
		tb.Fatalf("after %v still waiting for: %s", timeout, what)
	}
}
