package masters

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/shim"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// process implements Master by a redis-server or valkey-server of the run's own.
type process struct {
	commands
	server *redistest.Server
	config redistest.Config // the settings of the server and its replica
	clock  *shim.Clock      // nil when it can't be moved
	why    error            // why not
	keeps  bool             // it has an append-only file
	// certificates are those that it and its clients have; nil: it does not speak TLS.
	certificates *certificates
}

// OpenProcess starts redis-server or valkey-server from PATH, each with a new port and directory.
func OpenProcess(ctx context.Context, o Options) (*Fleet, error) {
	dir, err := os.MkdirTemp(o.TempDir, "redlock-chaos-")
	if err != nil {
		return nil, fmt.Errorf("masters: %w", err)
	}
	fleet := &Fleet{Backend: "process", Cleanup: func() error { return os.RemoveAll(dir) }}
	library, why := shim.Build(ctx, dir)
	if why != nil {
		fleet.Notes = append(fleet.Notes, "clock steps are emulated by moving ttls, drift is not available: "+
			why.Error())
	}
	var pairs *certificates
	if o.Secure {
		if pairs, err = newCertificates(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("masters: certificates: %w", err), fleet.Close())
		}
	}
	for i := range o.N {
		m, err := startProcess(ctx, o, dir, i, library, why, pairs)
		if err != nil {
			return nil, errors.Join(err, fleet.Close())
		}
		fleet.Masters = append(fleet.Masters, m)
		fleet.Endpoints = append(fleet.Endpoints, m.reach())
	}
	return fleet, nil
}

func startProcess(ctx context.Context, o Options, dir string, i int, library *shim.Library, why error,
	pairs *certificates,
) (*process, error) {
	// With rules for the clients' user this run's own connections go by another one, whatever becomes of that user's
	// rights.
	cfg := redistest.Config{Binary: o.Binary, AOF: o.AOF, TempDir: o.TempDir, User: []string{"~*", "&*", "+@all"}}
	m := &process{why: why, keeps: o.AOF, certificates: pairs}
	if pairs != nil {
		cfg.TLS, cfg.Args = pairs.ofServer(), []string{"--tls-replication", "yes"}
	}
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
	m.server, m.config = server, cfg
	opt, err := endpoint.Options(m.reach())
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.commands = commands{client: server.Client(), dial: func() *redis.Client { return newClient(opt) }}
	return m, nil
}

// reach is how clients reach it.
func (m *process) reach() endpoint.Endpoint {
	if m.certificates == nil {
		return endpoint.Plain(m.Addr())
	}
	return m.certificates.reach(m.Addr())
}

func (m *process) Addr() string { return m.server.Addr() }

func (m *process) Can(action Action) error {
	has := Server | Consent | Process | Arguments
	if m.keeps {
		has |= AppendOnly
	}
	if m.certificates != nil {
		has |= Secure
	}
	if m.clock != nil {
		has |= Clock
	}
	err := has.Has(action)
	if err != nil && action == ClockRate {
		err = fmt.Errorf("%w: %w", err, m.why)
	}
	return err
}

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
	f, err := FindFault(action)
	if err == nil && f.process != nil {
		return patiently(ctx, func() (Injection, error) {
			done, err := f.process(ctx, m, p)
			if err != nil {
				err = fmt.Errorf("%s: %w", action, err)
			}
			return done, err
		})
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
		return Injection{}, fmt.Errorf("clock-step: a probe's pttl went from %v to %v by a step of %v", before, after,
			d)
	}
	return seen(heal, "a probe's pttl went from %v to %v", before, after), nil
}

func (m *process) setRate(ctx context.Context, rate float64) (Injection, error) {
	m.clock.SetRate(rate)
	heal := func(context.Context) error { m.clock.SetRate(1); return nil }
	measured, err := measureRate(ctx, rate, m.readTime)
	if err != nil {
		return Injection{}, errors.Join(fmt.Errorf("clock-rate: %w", err), heal(ctx))
	}
	return seen(heal, "TIME runs at %.4f of the true rate", measured), nil
}

// readTime reads the server's clock.
func (m *process) readTime(ctx context.Context) (reading, error) {
	before := time.Now()
	there, err := m.client.Time(ctx).Result()
	after := time.Now()
	return reading{there, before, after}, err
}

// reading is a server's time, which it had at some moment between before and after.
type reading struct{ there, before, after time.Time }

// took is by how much the moment is unknown.
func (r reading) took() time.Duration { return r.after.Sub(r.before) }

// rateSince returns how fast the server's clock ran between two readings, and the largest possible
// error. The time between the readings is known up to half of their total duration. The rate is the
// time gained on the server's clock, divided by it.
func (r reading) rateSince(first reading) (rate, unsure float64) {
	elapsed := r.before.Sub(first.before) + (r.took()-first.took())/2
	shortest := elapsed - (r.took()+first.took())/2
	if shortest <= 0 {
		return 0, math.Inf(1)
	}
	gained := r.there.Sub(first.there).Seconds()
	rate = gained / elapsed.Seconds()
	return rate, math.Abs(gained/shortest.Seconds() - rate)
}

// measureRate reads a server's time until it knows that the clock runs at the wanted rate: the
// error must be at most half of the difference between the wanted rate and 1. On a busy machine
// answers are late and a reading is less exact, so measuring takes longer.
func measureRate(ctx context.Context, wanted float64, read func(context.Context) (reading, error)) (float64, error) {
	const within = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	enough := math.Abs(wanted-1) / 2
	var firsts []reading // each took less time than those before it: one that took more and came later is worse in both
	measured, unsure := 0.0, math.Inf(1)
	var failed error // a connection may have been closed by a fault that was on before
	for {
		r, err := read(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0,
				errors.Join(fmt.Errorf("wanted %g, and in %v measured only %.4f, give or take %.4f", wanted, within,
					measured, unsure), failed)
		case err != nil:
			failed = err
			pauseFor(ctx, 5*time.Millisecond)
			continue
		}
		for _, first := range firsts {
			if now, off := r.rateSince(first); off < unsure {
				measured, unsure = now, off
			}
		}
		if len(firsts) == 0 || r.took() < firsts[len(firsts)-1].took() {
			firsts = append(firsts, r)
		}
		if unsure < enough {
			if math.Abs(measured-wanted) > enough {
				return 0, fmt.Errorf("wanted %g, measured %.4f, give or take %.4f", wanted, measured, unsure)
			}
			return measured, nil
		}
		pauseFor(ctx, 5*time.Millisecond)
	}
}

func (m *process) Close() error {
	err := m.server.Stop() // closes the client too
	if m.clock != nil {
		err = errors.Join(err, m.clock.Close())
	}
	return err
}
