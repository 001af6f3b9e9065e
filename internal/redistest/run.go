package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/process"
)

const (
	// startTimeout bounds one start, including the loading of an append-only file.
	startTimeout = 20 * time.Second
	// portAttempts is how often Run tries another port when a different program takes the first.
	portAttempts = 20
	// maxSocketPath is safe on every unix: 104 with the final zero on macOS and the BSDs, 108 on Linux.
	maxSocketPath = 100
	// logTail is how much of the server's log an error quotes, in bytes.
	logTail = 2000
)

// Run starts a server and returns when it answers. The caller ends it with Stop. ctx bounds the start, not the server's
// life. When Run fails nothing is left behind; the error matches ErrNoServer when there is no program to run.
func Run(ctx context.Context, cfg Config) (*Server, error) {
	return runWith(ctx, cfg, localport.Reserve)
}

// RunN starts n servers concurrently. If one fails, the others are stopped.
func RunN(ctx context.Context, n int, cfg Config) ([]*Server, error) {
	if n > 1 && cfg.Port != 0 {
		return nil, fmt.Errorf("redistest: %d servers can't share port %d", n, cfg.Port)
	}
	servers := make([]*Server, n)
	failures := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { servers[i], failures[i] = Run(ctx, cfg) })
	}
	wg.Wait()
	err := errors.Join(failures...)
	if err == nil {
		return servers, nil
	}
	for _, s := range servers {
		if s != nil {
			err = errors.Join(err, s.Stop())
		}
	}
	return nil, err
}

// runWith is Run with a source of ports.
func runWith(ctx context.Context, cfg Config, reserve func() (*localport.Port, error)) (*Server, error) {
	binary, err := cfg.binary()
	if err != nil {
		return nil, err
	}
	if cfg.Port != 0 {
		return runOnPort(ctx, cfg, binary, func() (*localport.Port, error) { return localport.ReserveNumber(cfg.Port) })
	}
	for range portAttempts - 1 {
		s, err := runOnPort(ctx, cfg, binary, reserve)
		if !errors.Is(err, localport.ErrTaken) {
			return s, err
		}
	}
	return runOnPort(ctx, cfg, binary, reserve)
}

func runOnPort(ctx context.Context, cfg Config, binary string, reserve func() (*localport.Port, error)) (*Server,
	error,
) {
	port, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	s := &Server{cfg: cfg, binary: binary, port: port}
	if err := s.makeDirs(); err != nil {
		return nil, errors.Join(fmt.Errorf("redistest: %w", err), s.removeDirs(), port.Release())
	}
	if err := s.start(ctx, serves); err != nil {
		return nil, errors.Join(fmt.Errorf("redistest: start %s on %s: %w", binary, s.Addr(), err), s.removeDirs(),
			port.Release())
	}
	s.client = s.newClient()
	return s, nil
}

// makeDirs makes the server's directory, and a second one for its socket if the first path is too long. Systems allow
// about a hundred bytes, and a test's temporary directory contains the test's name.
func (s *Server) makeDirs() error {
	var err error
	if s.base, err = os.MkdirTemp(s.cfg.TempDir, "redistest-"); err != nil {
		return err
	}
	s.socketDir = s.base
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if len(s.socket()) <= maxSocketPath {
			return nil
		}
		if err := s.removeSocketDir(); err != nil {
			return err
		}
		if s.socketDir, err = os.MkdirTemp(parent, "redistest-"); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) removeSocketDir() error {
	if s.socketDir == s.base {
		return nil
	}
	return os.RemoveAll(s.socketDir)
}

func (s *Server) removeDirs() error {
	return errors.Join(s.removeSocketDir(), os.RemoveAll(s.base))
}

// start runs the process, with more arguments, and waits until ready accepts its answer. After a failure no process
// is left. The caller has exclusive use of s.
func (s *Server) start(ctx context.Context, ready func(answer string) bool, more ...string) error {
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.binary, append(s.cfg.arguments(s.Port(), s.dataDir(), s.socket()), more...)...)
	cmd.Env = append(os.Environ(), s.cfg.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := process.Start(cmd)
	if err != nil {
		return err
	}
	s.proc = proc
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	answered := process.Poll(ctx, func() bool { return !proc.Alive() || ready(answer(s.socket())) })
	if !answered || !proc.Alive() || ctx.Err() != nil { // a caller that gave up must not be left with a server
		return s.whyNotReady(ctx, log, before)
	}
	if err := s.isOurs(ctx); err != nil {
		return errors.Join(err, proc.Kill())
	}
	return nil
}

// startAgain is start on a port that another program may have taken while the server was down. It waits until the
// port is free.
func (s *Server) startAgain(ready func(answer string) bool, more ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var taken error
	for {
		err := s.start(ctx, ready, more...)
		switch {
		case err == nil || ctx.Err() == nil && !errors.Is(err, localport.ErrTaken):
			return err
		case ctx.Err() != nil:
			return errors.Join(taken, err)
		}
		taken = err
	}
}

// whyNotReady ends the process that did not become ready, and returns its log since the offset as an error.
func (s *Server) whyNotReady(ctx context.Context, log io.ReaderAt, offset int64) error {
	ended := !s.proc.Alive()
	if err := s.proc.Kill(); err != nil {
		return err
	}
	said, err := io.ReadAll(io.NewSectionReader(log, offset, 1<<20))
	if err != nil {
		return err
	}
	said = said[max(0, len(said)-logTail):]
	said = bytes.TrimSpace(said)
	switch {
	case ended && bytes.Contains(said, []byte("Address already in use")):
		return fmt.Errorf("%w: %s", localport.ErrTaken, said)
	case ended:
		return fmt.Errorf("process ended (%v) and said:\n%s", s.proc.State(), said)
	default:
		return fmt.Errorf("no answer: %w; the process said:\n%s", context.Cause(ctx), said)
	}
}

// serves reports whether a server with this answer performs commands. An error about the user counts, LOADING does not.
func serves(answer string) bool {
	return strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH") ||
		strings.HasPrefix(answer, "-NOPERM")
}

// listens is serves, but also accepts LOADING.
func listens(answer string) bool { return serves(answer) || strings.HasPrefix(answer, "-LOADING") }

// answer returns the first line of the server's reply to PING, through the socket; empty without a reply.
func answer(socket string) string {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return ""
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return ""
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return ""
	}
	return line
}
