// Package backend runs servers for locks that do not use Redis: an etcd cluster or a PostgreSQL server. They are
// processes of this machine, on free ports of 127.0.0.1, in new directories, with the programs' default settings.
//
// [Cluster.Close] ends the servers and removes their data. On Linux they also end with the program that started them,
// however it ends; their directory then stays.
package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/parallel"
	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/process"
)

// ErrNotInstalled means that a server's program is not on this machine.
var ErrNotInstalled = errors.New("not installed")

const (
	// startTimeout limits the start of a server.
	startTimeout = 30 * time.Second
	// endTimeout is how long a server may take to end before it is killed.
	endTimeout = 10 * time.Second
	// askTimeout limits one check whether it serves.
	askTimeout = time.Second
	// logTail is how much of the log of a server that did not start is in the error, in bytes.
	logTail = 4 << 10
)

// Server is one process. It can be killed, and started again with its data on disk. It is safe for concurrent use.
type Server struct {
	port    *localport.Port
	log     string // the file it writes to
	command func() *exec.Cmd
	// ready returns nil when the server serves.
	ready func(context.Context) error
	// end is the signal that ends the process cleanly; nil: it is killed.
	end   os.Signal
	close func() error

	mu   sync.Mutex
	proc *process.Process // the latest run; nil before the first
}

// Addr is host:port.
func (s *Server) Addr() string { return s.port.Addr() }

// Pid is the number of the process that was started last, 0 before the first.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.Pid()
}

// Start runs the process and waits until it serves, for at most half a minute. If the process ends by itself, Start
// tries again while there is time, because the remains of a killed server may block a start for a moment. If Start
// fails, no process is left.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if err := s.launch(); err != nil {
			return err
		}
		err := s.await(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || s.proc.Alive() {
			return errors.Join(err, s.proc.Kill())
		}
	}
}

func (s *Server) launch() error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := process.Start(cmd)
	if err == nil {
		s.proc = proc
	}
	return err
}

// await checks the server until it serves, has ended, or ctx is done.
func (s *Server) await(ctx context.Context) error {
	var err error
	served := process.Poll(ctx, func() bool {
		asked, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		err = s.ready(asked)
		return err == nil || !s.proc.Alive()
	})
	if served && err == nil {
		return nil
	}
	return fmt.Errorf("backend: a server on %s does not serve: %w; it said:\n%s", s.Addr(), err, s.said())
}

// said returns the end of the server's log.
func (s *Server) said() []byte {
	text, _ := os.ReadFile(s.log) // an unreadable log counts as empty
	return text[max(0, len(text)-logTail):]
}

// Kill kills the process at once and returns when its port is closed. The server's data stay on disk.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	if err := s.proc.Kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if !process.Poll(ctx, s.refuses) {
		return fmt.Errorf("backend: %s was killed and still listens", s.Addr())
	}
	return nil
}

func (s *Server) refuses() bool {
	conn, err := net.DialTimeout("tcp", s.Addr(), askTimeout)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Pause suspends the process: connections stay open and get no answers. Its child processes go on.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Pause()
}

// Resume continues a paused process. It does nothing to a running one.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Resume()
}

// Stop ends the process, paused or not, and frees its port. The server can't be started again.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.close()
	switch {
	case s.proc == nil:
	case s.end != nil:
		err = errors.Join(err, s.proc.Interrupt(s.end, endTimeout))
	default:
		err = errors.Join(err, s.proc.Kill())
	}
	return errors.Join(err, s.port.Release())
}

// Cluster is the servers of one service, and the directory of their data.
type Cluster struct {
	// Version is the program's own version text.
	Version string
	Servers []*Server
	dir     string
}

// Addrs are the addresses of the servers.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Close ends the servers and removes their data.
func (c *Cluster) Close() error {
	var errs []error
	for _, s := range c.Servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// start starts all servers at the same time, because members of a cluster wait for each other. If it fails, it closes
// the cluster.
func (c *Cluster) start(ctx context.Context) error {
	err := parallel.Each(len(c.Servers), func(i int) error { return c.Servers[i].Start(ctx) })
	if err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// version returns the program's answer to --version, or its name if there is no answer.
func version(ctx context.Context, program string) string {
	out, _ := exec.CommandContext(ctx, program, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if line == "" {
		return filepath.Base(program)
	}
	return line
}
