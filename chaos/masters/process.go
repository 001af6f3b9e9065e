package masters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/shim"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// process is a redis-server or valkey-server of the run's own.
type process struct {
	commands
	server *redistest.Server
	clock  *shim.Clock // nil when it can't be moved
	why    error       // why not
}

// OpenProcess starts redis-server or valkey-server from PATH, each with a port and a directory of its own.
func OpenProcess(ctx context.Context, o Options) (*Fleet, error) {
	dir, err := os.MkdirTemp(o.TempDir, "redlock-chaos-")
	if err != nil {
		return nil, fmt.Errorf("masters: %w", err)
	}
	fleet := &Fleet{Backend: "process", Cleanup: func() error { return os.RemoveAll(dir) }}
	library, why := shim.Build(ctx, dir)
	if why != nil {
		fleet.Notes = append(fleet.Notes, "clock steps are emulated by moving ttls, drift is not available: "+why.Error())
	}
	for i := range o.N {
		m, err := startProcess(ctx, o, dir, i, library, why)
		if err != nil {
			return nil, errors.Join(err, fleet.Close())
		}
		fleet.Masters = append(fleet.Masters, m)
	}
	return fleet, nil
}

func startProcess(ctx context.Context, o Options, dir string, i int, library *shim.Library, why error) (*process, error) {
	cfg := redistest.Config{Binary: o.Binary, AOF: o.AOF, TempDir: o.TempDir}
	m := &process{why: why}
	if library != nil {
		clock, err := library.NewClock(dir, fmt.Sprintf("clock-%d", i))
		if err != nil {
			return nil, fmt.Errorf("masters: %w", err)
		}
		m.clock = clock
		cfg.Env = clock.Env()
	}
	server, err := redistest.Run(ctx, cfg)
	if err != nil {
		if m.clock != nil {
			err = errors.Join(err, m.clock.Close())
		}
		if errors.Is(err, redistest.ErrNoServer) {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return nil, fmt.Errorf("masters: %w", err)
	}
	m.server = server
	m.commands = commands{
		client: server.Client(),
		dial:   func() *redis.Client { return newClient(server.Addr()) },
	}
	return m, nil
}

// Addr implements Master.
func (m *process) Addr() string { return m.server.Addr() }

// Can implements Master.
func (m *process) Can(action Action) error {
	if action == ClockRate && m.clock == nil {
		return unavailable("%s needs the clock shim: %v", action, m.why)
	}
	if action == Disconnect {
		return unavailable("%s needs servers with a network of their own; use containers", action)
	}
	return nil
}

// Look implements Master.
func (m *process) Look(ctx context.Context, keys []string) ([]Key, error) { return m.look(ctx, keys) }

// Inject implements Master.
func (m *process) Inject(ctx context.Context, action Action, p Params) (Injection, error) {
	if err := m.Can(action); err != nil {
		return Injection{}, err
	}
	switch action {
	case Pause:
		pid := m.server.Pid()
		if err := m.server.Pause(); err != nil {
			return Injection{}, fmt.Errorf("pause: %w", err)
		}
		return seen(func(context.Context) error { return m.server.Resume() }, "process %d is stopped", pid), nil
	case Kill:
		return m.kill(m.server.Restart)
	case KillEmpty:
		return m.kill(m.server.RestartEmpty)
	case ClockStep:
		if m.clock != nil {
			return m.stepClock(ctx, p.Step)
		}
	case ClockRate:
		return m.setRate(ctx, p.Rate)
	}
	return m.inject(ctx, action, p)
}

func (m *process) kill(restart func() error) (Injection, error) {
	pid := m.server.Pid()
	if err := m.server.Kill(); err != nil {
		return Injection{}, fmt.Errorf("kill: %w", err)
	}
	heal := func(context.Context) error { return restart() }
	if conn, err := net.DialTimeout("tcp", m.Addr(), time.Second); err == nil {
		_ = conn.Close()
		return Injection{}, errors.Join(errors.New("kill: a connection was accepted"), restart())
	}
	return seen(heal, "process %d is gone and connections are refused", pid), nil
}

func (m *process) stepClock(ctx context.Context, d time.Duration) (Injection, error) {
	ttl := 24*time.Hour + max(d, 0)
	if err := m.client.Set(ctx, probe, "here", ttl).Err(); err != nil {
		return Injection{}, fmt.Errorf("clock-step: %w", err)
	}
	before := m.client.PTTL(ctx, probe).Val()
	m.clock.Step(d)
	after := m.client.PTTL(ctx, probe).Val()
	heal := func(context.Context) error { m.clock.Set(0); return nil }
	if gone := before - after; (gone - d).Abs() > d.Abs()/2 {
		_ = heal(ctx)
		return Injection{}, fmt.Errorf("clock-step: a probe's pttl went from %v to %v by a step of %v", before, after, d)
	}
	return seen(heal, "a probe's pttl went from %v to %v", before, after), nil
}

func (m *process) setRate(ctx context.Context, rate float64) (Injection, error) {
	serverTime := func() (there, here time.Time, err error) {
		there, err = m.client.Time(ctx).Result()
		return there, time.Now(), err
	}
	m.clock.SetRate(rate)
	heal := func(context.Context) error { m.clock.SetRate(1); return nil }
	there0, here0, err := serverTime()
	var measured float64
	matches := func() bool {
		there, here, e := serverTime()
		err = errors.Join(err, e)
		if elapsed := here.Sub(here0); elapsed > 20*time.Millisecond {
			measured = there.Sub(there0).Seconds() / elapsed.Seconds()
		}
		return measured != 0 && (measured-rate)*(measured-rate) < (rate-1)*(rate-1)/4
	}
	if !poll(ctx, 2*time.Second, matches) || err != nil {
		return Injection{}, errors.Join(fmt.Errorf("clock-rate: wanted %g, measured %.4f: %w", rate, measured, err), heal(ctx))
	}
	return seen(heal, "TIME runs at %.4f of the true rate", measured), nil
}

// Close implements Master.
func (m *process) Close() error {
	err := m.server.Stop() // closes the client too
	if m.clock != nil {
		err = errors.Join(err, m.clock.Close())
	}
	return err
}
