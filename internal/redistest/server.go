package redistest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/process"
)

// Errors of the methods of Server, for errors.Is.
var (
	// ErrStopped: Stop was called, and the server no longer exists.
	ErrStopped = errors.New("server was stopped for good")
	// ErrDown: the process does not run, so it can be neither paused nor resumed.
	ErrDown = errors.New("server does not run")
)

// Server is one redis-server process with a port and a directory, which it keeps from one run of the process to the
// next. All methods may be called concurrently; methods that change the process wait for each other.
//
// If a method of a Server made by Start or StartN fails, it also fails the test.
type Server struct {
	cfg       Config
	binary    string
	base      string // directory: the log, data/ and usually the socket
	socketDir string
	port      *localport.Port
	client    *redis.Client

	mu      sync.Mutex
	proc    *process.Process // the latest run of the process, possibly ended
	stopped bool             // Stop was called
	report  func(error)      // set when a test wants to hear of errors
}

// Addr is host:port.
func (s *Server) Addr() string { return s.port.Addr() }

// Port is the TCP port. It stays the same for the server's whole life.
func (s *Server) Port() int { return s.port.Number() }

// Dir holds the log (redis.log) and the data directory (data); Stop removes it.
func (s *Server) Dir() string { return s.base }

// URL is the address for clients: redis:// or rediss://, with the password if there is one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.cfg.TLS != nil {
		u.Scheme = "rediss"
	}
	if s.cfg.Password != "" {
		u.User = url.UserPassword("", s.cfg.Password)
	}
	return u.String()
}

// Pid is the process's id, or 0 when it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.Alive() {
		return 0
	}
	return s.proc.Pid()
}

// Client is for looking at the server without using the test's connections. It uses a unix socket, so it works
// whatever happens to TCP. It honours each context's deadline and never retries. Stop closes it.
func (s *Server) Client() *redis.Client { return s.client }

func (s *Server) newClient() *redis.Client {
	username, password := s.cfg.credentials()
	return redis.NewClient(&redis.Options{
		Network:                  "unix",
		Addr:                     s.socket(),
		Username:                 username,
		Password:                 password,
		MaxRetries:               -1,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		DialerRetries:            1,
		PoolSize:                 1 << 12, // after as many refusals go-redis does not dial for up to a second
		PipelinePoolSize:         1 << 12,
		MaxIdleConns:             10,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

func (s *Server) socket() string  { return filepath.Join(s.socketDir, "redis.sock") }
func (s *Server) dataDir() string { return filepath.Join(s.base, "data") }
func (s *Server) logFile() string { return filepath.Join(s.base, "redis.log") }

// Pause stops the process (SIGSTOP): connections stay open and new ones are even accepted, but nothing is answered.
// When Pause returns, every thread of the process has stopped. It returns ErrDown if the process does not run.
func (s *Server) Pause() error {
	return s.change("pause", func() error {
		if !s.proc.Alive() {
			return ErrDown
		}
		return s.proc.Pause()
	})
}

// Resume continues a paused process (SIGCONT). It does nothing to any other process. It returns ErrDown if the
// process does not run.
func (s *Server) Resume() error {
	return s.change("resume", func() error {
		if !s.proc.Alive() {
			return ErrDown
		}
		return s.proc.Resume()
	})
}

// Kill ends the process as a crash would (SIGKILL), paused or not, and waits until it is gone: then connections are
// refused. It does nothing when the process does not run.
func (s *Server) Kill() error {
	return s.change("kill", func() error { return s.proc.Kill() })
}

// Restart kills the process if it runs and starts it anew on the same port and directory. With Config.AOF everything
// that was confirmed is back when Restart returns; without it the data is lost, as after RestartEmpty.
func (s *Server) Restart() error {
	return s.change("restart", func() error {
		if err := s.proc.Kill(); err != nil {
			return err
		}
		return s.startAgain(serves)
	})
}

// RestartWith is Restart with more arguments for this run. It returns as soon as the server listens: it may still
// load its data then, and answer LOADING.
func (s *Server) RestartWith(args ...string) error {
	return s.change("restart", func() error {
		if err := s.proc.Kill(); err != nil {
			return err
		}
		return s.startAgain(listens, args...)
	})
}

// RestartEmpty kills the process if it runs, removes its data and starts it anew on the same port.
func (s *Server) RestartEmpty() error {
	return s.change("restart empty", func() error {
		if err := s.proc.Kill(); err != nil {
			return err
		}
		if err := os.RemoveAll(s.dataDir()); err != nil {
			return err
		}
		return s.startAgain(serves)
	})
}

// Stop ends the server permanently. It kills the process, paused or not, and waits for it. It closes the client,
// removes the directory and releases the port. Calling it again does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	err := errors.Join(s.client.Close(), s.proc.Kill(), s.removeDirs(), s.port.Release())
	return s.tell("stop", err)
}

// change runs one change of the process at a time.
func (s *Server) change(what string, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return s.tell(what, ErrStopped)
	}
	return s.tell(what, f())
}

func (s *Server) tell(what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("redistest: %s %s: %w", what, s.Addr(), err)
	if s.report != nil {
		s.report(err)
	}
	return err
}

// reportTo passes errors of later calls to f, too; nil ends that.
func (s *Server) reportTo(f func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = f
}
