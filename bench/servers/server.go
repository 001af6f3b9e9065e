package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/internal/localport"
)

// server is a process of this machine, which can be killed and started again with the data it has on disk.
type server struct {
	port    *localport.Port
	command func() *exec.Cmd
	// ready returns nil when the server serves.
	ready func(context.Context) error
	// look reads who holds which of the keys.
	look  func(ctx context.Context, keys []string) ([]masters.Key, error)
	close func() error

	mu  sync.Mutex
	cmd *exec.Cmd
	log *bytes.Buffer // of the process last started: one that was killed may still be written to
}

// patience is how long a server may take to start.
const patience = 30 * time.Second

// start runs the process and waits until it serves. One that ends by itself is started again while there is time: what a killed server
// left may be in the way for a moment.
func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.log = new(bytes.Buffer)
		s.cmd = s.command()
		s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
		if err := s.cmd.Start(); err != nil {
			return err
		}
		exited := make(chan struct{})
		go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(exited) }(s.cmd)
		ended, err := s.await(ctx, exited)
		if err == nil || !ended || ctx.Err() != nil {
			return err
		}
	}
}

// await asks the server until it serves, has ended, or ctx is done.
func (s *server) await(ctx context.Context, exited <-chan struct{}) (ended bool, _ error) {
	for {
		asked, cancel := context.WithTimeout(ctx, time.Second)
		err := s.ready(asked)
		cancel()
		if err == nil {
			return false, nil
		}
		select {
		case <-exited:
			return true, fmt.Errorf("%s has ended: %s", filepath.Base(s.cmd.Path), s.log.String())
		case <-ctx.Done():
			return false, errors.Join(fmt.Errorf("%s does not serve: %w", filepath.Base(s.cmd.Path), err), s.kill())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill ends the process and returns when nobody is listening any more.
func (s *server) kill() error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for begin := time.Now(); time.Since(begin) < patience; <-time.After(2 * time.Millisecond) {
		if conn, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
			_ = conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
	}
	return fmt.Errorf("%s was killed and still listens", s.Addr())
}

// Addr implements masters.Master.
func (s *server) Addr() string { return s.port.Addr() }

// Can implements masters.Master.
func (s *server) Can(action masters.Action) error {
	if action == masters.Kill {
		return nil
	}
	return fmt.Errorf("%w: these servers can only be killed", masters.ErrUnavailable)
}

// Inject implements masters.Master.
func (s *server) Inject(_ context.Context, action masters.Action, _ masters.Params) (masters.Injection, error) {
	if err := s.Can(action); err != nil {
		return masters.Injection{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid := s.cmd.Process.Pid
	if err := s.kill(); err != nil {
		return masters.Injection{}, err
	}
	var once sync.Once
	heal := func(ctx context.Context) (err error) {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			err = s.start(ctx)
		})
		return err
	}
	return masters.Injection{Observed: fmt.Sprintf("process %d is gone and connections are refused", pid), Heal: heal}, nil
}

// Look implements masters.Master.
func (s *server) Look(ctx context.Context, keys []string) ([]masters.Key, error) {
	return s.look(ctx, keys)
}

// Close implements masters.Master.
func (s *server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.kill(), s.close(), s.port.Release())
}
