// Package fleet has the masters a benchmark runs on: redis-server processes of its own or servers that are there
// already, and proxies that make the way to them longer.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// ErrNotOurs means that a server was to be stopped that this process did not start.
var ErrNotOurs = errors.New("fleet: only servers that the benchmark started itself can be stopped")

// Fleet is a number of masters. Its methods are for one goroutine at a time.
type Fleet struct {
	addrs   []string
	servers []*redistest.Server
}

// Start runs n servers that keep nothing on disk. Close ends them.
func Start(ctx context.Context, n int) (*Fleet, error) {
	if n < 1 {
		return nil, fmt.Errorf("fleet: %d masters", n)
	}
	servers, err := redistest.RunN(ctx, n, redistest.Config{})
	if err != nil {
		return nil, err
	}
	f := &Fleet{servers: servers}
	for _, s := range servers {
		f.addrs = append(f.addrs, s.Addr())
	}
	return f, nil
}

// Attach uses servers that run already, each "host:port". They are never stopped nor emptied.
func Attach(addrs []string) (*Fleet, error) {
	seen := map[string]bool{}
	for _, a := range addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, fmt.Errorf("fleet: address %q: %w", a, err)
		}
		if seen[a] {
			return nil, fmt.Errorf("fleet: address %q is listed twice", a)
		}
		seen[a] = true
	}
	if len(addrs) == 0 {
		return nil, errors.New("fleet: no addresses")
	}
	return &Fleet{addrs: append([]string(nil), addrs...)}, nil
}

// Len is the number of masters.
func (f *Fleet) Len() int { return len(f.addrs) }

// Ours says whether this process started the servers and so may stop them.
func (f *Fleet) Ours() bool { return f.servers != nil }

// Addrs returns the first n addresses.
func (f *Fleet) Addrs(n int) ([]string, error) {
	if n < 1 || n > len(f.addrs) {
		return nil, fmt.Errorf("fleet: %d of %d masters", n, len(f.addrs))
	}
	return append([]string(nil), f.addrs[:n]...), nil
}

// Pause stops master i where it stands (SIGSTOP): connections stay open and nothing is answered.
func (f *Fleet) Pause(i int) error {
	if !f.Ours() {
		return ErrNotOurs
	}
	return f.servers[i].Pause()
}

// Resume lets master i go on. It does nothing to one that is not paused.
func (f *Fleet) Resume(i int) error {
	if !f.Ours() {
		return ErrNotOurs
	}
	return f.servers[i].Resume()
}

// Close ends the servers that Start started.
func (f *Fleet) Close() error {
	var err error
	for _, s := range f.servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}
