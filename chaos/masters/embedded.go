package masters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

// inProcess implements Master inside this process.
type inProcess struct {
	commands
	master *embedded.Master
}

// OpenEmbedded starts masters inside this process. They need no installation. They lack the actions that need a server
// process: eviction, busy scripts, connection limits and clocks independent of this machine's.
func OpenEmbedded(_ context.Context, o Options) (*Fleet, error) {
	fleet := &Fleet{Backend: "embedded", Notes: []string{"clock steps are emulated by moving ttls"}}
	for range o.N {
		m, err := embedded.New()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("masters: %w", err), fleet.Close())
		}
		dial := func() *redis.Client { return newClient(&redis.Options{Addr: m.Addr()}) }
		fleet.Masters = append(fleet.Masters, &inProcess{commands: commands{client: dial(), dial: dial}, master: m})
	}
	return fleet, nil
}

func (m *inProcess) Addr() string            { return m.master.Addr() }
func (m *inProcess) Can(action Action) error { return (Process | Consent).Has(action) }

func (m *inProcess) Inject(ctx context.Context, action Action, p Params) (Injection, error) {
	if err := m.Can(action); err != nil {
		return Injection{}, err
	}
	switch action {
	case Pause:
		m.master.Pause()
		heal := func(context.Context) error { m.master.Resume(); return nil }
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if err := m.client.Ping(short).Err(); err == nil {
			return Injection{}, errors.Join(errors.New("pause: a ping was answered"), heal(ctx))
		}
		return seen(heal, "a ping is not answered"), nil
	case Kill:
		return m.stop(m.master.Stop)
	case KillEmpty:
		return m.stop(m.master.StopLosingData)
	}
	return m.inject(ctx, action, p)
}

func (m *inProcess) stop(stop func() error) (Injection, error) {
	if err := stop(); err != nil {
		return Injection{}, fmt.Errorf("kill: %w", err)
	}
	heal := func(context.Context) error { return m.master.Restart() }
	refused := func() bool {
		conn, err := net.DialTimeout("tcp", m.Addr(), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}
	// A child process that is being started has a copy of the listener until it has become another program.
	if !machine.Poll(context.Background(), time.Second, refused) {
		return Injection{}, errors.Join(errors.New("kill: a connection was accepted"), heal(context.Background()))
	}
	return seen(heal, "connections are refused"), nil
}

func (m *inProcess) Close() error { return errors.Join(m.client.Close(), m.master.Close()) }
