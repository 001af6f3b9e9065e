// Package masters provides Redis masters for fault injection. A backend says where the masters come from. Each master
// lists the actions that it can perform, performs them, and shows by observation that they took effect.
//
// Backends in [Standard]: "embedded" (in this process, no dependency), "process" (redis-server or
// valkey-server from PATH, each with a new port and directory), "external" (addresses that the
// caller gives). Another package adds a backend by putting its [Factory] into the registry.
package masters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/network"
)

// Action names something to do to a master.
type Action string

// The actions that each backend performs in its own way; the others are in the files of their
// faults. All effects but changes of clocks are over when Injection.Heal has returned.
const (
	// Pause stops the server's process: connections are accepted and nothing is answered. Heal resumes it.
	Pause Action = "pause"
	// Kill ends the server as a crash would; Heal starts it again with the data it has on disk, which for a server
	// without persistence is none.
	Kill Action = "kill"
	// KillEmpty ends it and loses its data; Heal starts it again.
	KillEmpty Action = "kill-empty"
	// Disconnect takes the server off the network on which clients reach it: packets are lost in both directions, and
	// connections stay as they are. Heal plugs it in again.
	Disconnect Action = "disconnect"
)

// ErrUnavailable is matched when this machine lacks a backend, or a master can't perform an action. The error says why.
var ErrUnavailable = errors.New("masters: not available")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, args...))
}

// Params are an action's numbers; those that it does not use are ignored.
type Params struct {
	For  time.Duration
	Step time.Duration
	Rate float64
}

// Injection is an action that took effect.
type Injection struct {
	// Observed describes the observed effect, for a report: "pttl of a probe went from 1h0m0s to 59m30s".
	Observed string
	// Heal undoes it and returns when the master serves again. It is never nil, and calling it again does nothing.
	Heal func(context.Context) error
}

// Key is a key seen on a master.
type Key struct {
	Name string
	// Owners are the holders according to the master: the value of a string, the fields of a hash, or the members of a
	// sorted set. Members of a sorted set count if their score, a time in milliseconds, is in the future.
	Owners []string
	// TTL is how long it will live; negative when for ever.
	TTL time.Duration
}

// Master is one server to hurt. Its methods are safe for concurrent use. Two injections of one action at a time may
// heal each other, but on masters of [Registry.Open], where an action is over when all its injections are healed.
type Master interface {
	// Addr is host:port, where clients (or the proxies before it) connect; the same for the master's whole life.
	Addr() string
	// Can returns nil if the action is available, or an error that matches ErrUnavailable and says why not.
	Can(Action) error
	// Inject performs the action and returns when it has observed the effect. An error means that there was no effect,
	// and that the change has been undone as far as possible. ctx bounds the call, not the effect.
	Inject(ctx context.Context, action Action, p Params) (Injection, error)
	// Look reads who holds the named keys, past all broken networks. Keys that do not exist are left out.
	Look(ctx context.Context, keys []string) ([]Key, error)
	// Close ends the master, even a paused one, and removes its files.
	Close() error
}

// Keyspace lists all keys of a master with their times to live; negative: for ever. The error matches ErrUnavailable if
// its backend can't tell.
func Keyspace(ctx context.Context, m Master) (map[string]time.Duration, error) {
	lister, ok := behind(m).(interface {
		Keyspace(context.Context) (map[string]time.Duration, error)
	})
	if !ok {
		return nil, unavailable("this backend does not list keys")
	}
	return lister.Keyspace(ctx)
}

// Connections counts the connections that clients have to a master, with the harness's own. The error matches
// ErrUnavailable if its backend can't tell.
func Connections(ctx context.Context, m Master) (int, error) {
	counter, ok := behind(m).(interface {
		Connections(context.Context) (int, error)
	})
	if !ok {
		return 0, unavailable("this backend does not count connections")
	}
	return counter.Connections(ctx)
}

// behind is the backend's master.
func behind(m Master) Master {
	if o, ok := m.(*overlapping); ok {
		return o.Master
	}
	return m
}

// Fleet is the masters of one run.
type Fleet struct {
	// Backend is its name.
	Backend string
	Masters []Master
	// Proxy is the address of a toxiproxy server's API. Clients have to reach the masters through
	// its proxies. Empty: the run makes proxies in this process.
	Proxy string
	// Upstreams are the masters' addresses as that toxiproxy server reaches them. Default: as Addrs.
	Upstreams []string
	// Endpoints say how each master is reached where that takes more than its address. Default: none does.
	Endpoints []endpoint.Endpoint
	// Places are where proxies on that server may listen. Default: wherever it likes, as on this machine anybody could.
	Places []network.Place
	// Cleanup removes the files and other remains of the backend after all masters were closed. It
	// is called once. Default: nothing to do.
	Cleanup func() error
	// Notes list unusual conditions: an emulated action, a missing compiler.
	Notes []string
}

// Addrs are the masters' addresses.
func (f *Fleet) Addrs() []string {
	addrs := make([]string, len(f.Masters))
	for i, m := range f.Masters {
		addrs[i] = m.Addr()
	}
	return addrs
}

// Reach is how the masters are reached from here.
func (f *Fleet) Reach() []endpoint.Endpoint {
	if len(f.Endpoints) > 0 {
		return slices.Clone(f.Endpoints)
	}
	all := make([]endpoint.Endpoint, len(f.Masters))
	for i, m := range f.Masters {
		all[i] = endpoint.Plain(m.Addr())
	}
	return all
}

// Pids are the processes of those masters that are processes of this machine, at the moment; by number of the master.
func (f *Fleet) Pids() map[int]int {
	pids := make(map[int]int)
	for i, m := range f.Masters {
		if p, ok := behind(m).(*process); ok {
			if pid := p.server.Pid(); pid != 0 {
				pids[i] = pid
			}
		}
	}
	return pids
}

// Can returns nil if every master can do the action, or the first reason why not.
func (f *Fleet) Can(action Action) error {
	for _, m := range f.Masters {
		if err := m.Can(action); err != nil {
			return err
		}
	}
	return nil
}

// Close closes every master and cleans up the backend. Calling it again does nothing.
func (f *Fleet) Close() error {
	var err error
	for _, m := range f.Masters {
		err = errors.Join(err, m.Close())
	}
	f.Masters = nil
	if f.Cleanup != nil {
		err = errors.Join(err, f.Cleanup())
		f.Cleanup = nil
	}
	return err
}

// Options describe a fleet.
type Options struct {
	// N is how many masters. Default: 5.
	N int
	// Clients is how many clients there will be, each with a proxy for every master. Default: 5.
	Clients int
	// AOF makes servers that the run starts keep all acknowledged writes across a crash.
	AOF bool
	// Secure makes servers of the run's own speak TLS, with certificates that the run makes. The process backend can do
	// that.
	Secure bool
	// Binary is the server to run. Default: redis-server or valkey-server from PATH.
	Binary string
	// Addrs are the external backend's masters, as the proxies reach them: host:port, or URLs as
	// single.ParseURL reads them. Passwords are shown nowhere.
	Addrs []string
	// TLS has files for the addresses that speak TLS. If a file is set, host:port means TLS.
	TLS endpoint.TLS
	// Proxy is the external backend's toxiproxy API, for instance http://127.0.0.1:8474. Default: proxies in process.
	Proxy string
	// Destructive allows actions on external masters that destroy data or change their configuration.
	Destructive bool
	// TempDir is where directories are made. Default: os.TempDir.
	TempDir string
}

// Flags are the flags of redlock-chaos that say the same, each after a blank, with xxxxx for passwords.
func (o Options) Flags() string {
	var b strings.Builder
	addrs := make([]string, len(o.Addrs))
	for i, addr := range o.Addrs {
		addrs[i] = endpoint.Redacted(addr)
	}
	for _, f := range [][2]string{
		{"addrs", strings.Join(addrs, ",")}, {"tls-ca", o.TLS.CA}, {"tls-cert", o.TLS.Cert}, {"tls-key", o.TLS.Key}, {
			"proxy", o.Proxy,
		}, {"binary", o.Binary},
	} {
		if f[1] != "" {
			fmt.Fprintf(&b, " -%s %s", f[0], f[1])
		}
	}
	if o.AOF {
		b.WriteString(" -aof")
	}
	if o.Secure {
		b.WriteString(" -tls")
	}
	if o.Destructive {
		b.WriteString(" -destructive")
	}
	return b.String()
}

// Factory makes a fleet. If it fails, it cleans up after itself; the error matches ErrUnavailable
// if this machine lacks a requirement.
type Factory func(ctx context.Context, o Options) (*Fleet, error)

// Registry has the backends by name.
type Registry map[string]Factory

// Standard returns a new registry with the backends of this package.
func Standard() Registry {
	return Registry{"embedded": OpenEmbedded, "process": OpenProcess, "external": OpenExternal}
}

// Open makes a fleet of the named backend.
func (r Registry) Open(ctx context.Context, backend string, o Options) (*Fleet, error) {
	open, ok := r[backend]
	if !ok {
		return nil, fmt.Errorf("masters: no backend %q; there are %v", backend, slices.Sorted(maps.Keys(r)))
	}
	o.N, o.Clients = cmp.Or(o.N, 5), cmp.Or(o.Clients, 5)
	if o.N < 1 || o.Clients < 1 {
		return nil, fmt.Errorf("masters: %d masters and %d clients asked for, want at least 1 of each", o.N, o.Clients)
	}
	fleet, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	for i, m := range fleet.Masters {
		fleet.Masters[i] = &overlapping{Master: m, on: make(map[repeat]*shared)}
	}
	return fleet, nil
}
