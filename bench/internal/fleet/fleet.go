// Package fleet provides the masters for a benchmark: new redis-server processes, or servers that run already. Proxies
// can make the way to a master longer.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// ErrNotOurs means that the caller wanted to stop a server that this process did not start.
var ErrNotOurs = errors.New("fleet: only servers that the benchmark started itself can be stopped")

// server is a process that can be suspended.
type server interface {
	Addr() string
	Pid() int
	Pause() error
	Resume() error
	Stop() error
}

// Fleet is a number of masters, or of members of another service. Its methods are for one goroutine at a time.
type Fleet struct {
	addrs   []string
	servers []server
	close   func() error
	leader  func(ctx context.Context, addrs []string) (int, error) // nil: members are all the same
	text    string
}

// Roles of the members of a fleet. Stopping the leader and stopping a follower are separate cases.
const (
	Follower = "a follower"
	Leader   = "the leader"
)

// Start runs n servers that write nothing to disk. Close ends them.
func Start(ctx context.Context, n int) (*Fleet, error) {
	if n < 1 {
		return nil, fmt.Errorf("fleet: %d masters", n)
	}
	servers, err := redistest.RunN(ctx, n, redistest.Config{})
	if err != nil {
		return nil, err
	}
	f := &Fleet{text: fmt.Sprintf("%d redis-server processes that keep nothing on disk", n)}
	for _, s := range servers {
		f.add(s)
	}
	f.close = f.stopAll
	return f, nil
}

func (f *Fleet) add(s server) {
	f.servers, f.addrs = append(f.servers, s), append(f.addrs, s.Addr())
}

func (f *Fleet) stopAll() error {
	var err error
	for _, s := range f.servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// Etcd runs a cluster of n etcd members with their data below dir; "" is the directory for temporary files. Close ends
// the cluster.
func Etcd(ctx context.Context, dir string, n int) (*Fleet, error) {
	f, err := of(backend.Etcd(ctx, dir, n))
	if err == nil {
		f.leader = backend.EtcdLeader
	}
	return f, err
}

// Postgres runs one PostgreSQL server. Close ends it.
func Postgres(ctx context.Context) (*Fleet, error) { return of(backend.Postgres(ctx, "")) }

func of(c *backend.Cluster, err error) (*Fleet, error) {
	if err != nil {
		return nil, err
	}
	f := &Fleet{close: c.Close, text: c.Version}
	for _, s := range c.Servers {
		f.add(s)
	}
	return f, nil
}

// Attach uses servers that run already, each "host:port". It never stops or empties them.
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

// Ours reports whether this process started the servers and so may stop them.
func (f *Fleet) Ours() bool { return f.servers != nil }

// Pids are the numbers of the servers' processes; none for servers that this process did not start.
func (f *Fleet) Pids() []int {
	var pids []int
	for _, s := range f.servers {
		pids = append(pids, s.Pid())
	}
	return pids
}

// Text describes the servers in a line; it is empty for servers that ran already.
func (f *Fleet) Text() string { return f.text }

// Roles lists the roles of members to stop. If all members are the same, it is one role without a name.
func (f *Fleet) Roles() []string {
	if f.leader == nil {
		return []string{""}
	}
	return []string{Follower, Leader}
}

// Victim returns the member to stop: the member with this role now, or the middle one of n equal members.
func (f *Fleet) Victim(ctx context.Context, role string, n int) (int, error) {
	if f.leader == nil {
		return n / 2, nil
	}
	leader, err := f.leader(ctx, f.addrs)
	if role == Follower {
		leader = (leader + 1) % f.Len()
	}
	return leader, err
}

// Addrs returns the first n addresses.
func (f *Fleet) Addrs(n int) ([]string, error) {
	if n < 1 || n > len(f.addrs) {
		return nil, fmt.Errorf("fleet: %d of %d masters", n, len(f.addrs))
	}
	return append([]string(nil), f.addrs[:n]...), nil
}

// Pause suspends master i (SIGSTOP): connections stay open and get no answers.
func (f *Fleet) Pause(i int) error {
	if !f.Ours() {
		return ErrNotOurs
	}
	return f.servers[i].Pause()
}

// Resume continues master i. It does nothing to a running one.
func (f *Fleet) Resume(i int) error {
	if !f.Ours() {
		return ErrNotOurs
	}
	return f.servers[i].Resume()
}

// Close ends the servers that were started here.
func (f *Fleet) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}
