package masters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
)

// external implements Master by a server that the harness did not start.
type external struct {
	commands
	addr        string
	destructive bool
}

// OpenExternal uses the servers at o.Addrs, with o.TLS, which stay as they are: nothing is started and nothing is
// ended. o.N is ignored. Faults come through proxies; what commands can do is allowed by o.Destructive.
func OpenExternal(ctx context.Context, o Options) (*Fleet, error) {
	if len(o.Addrs) == 0 {
		return nil, errors.New("masters: the external backend needs addresses")
	}
	fleet := &Fleet{Backend: "external", Proxy: o.Proxy, Notes: []string{"clock steps are emulated by moving ttls"}}
	for i, addr := range o.Addrs {
		e, err := endpoint.Parse(addr, o.TLS)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("masters: address %d of %d: %w", i+1, len(o.Addrs), err), fleet.Close())
		}
		if first := slices.IndexFunc(fleet.Endpoints, func(other endpoint.Endpoint) bool {
			return other.Addr == e.Addr
		}); first >= 0 {
			return nil,
				errors.Join(fmt.Errorf("masters: address %d of %d is that of address %d: each master counts once", i+1,
					len(o.Addrs), first+1), fleet.Close())
		}
		fleet.Endpoints = append(fleet.Endpoints, e)
	}
	for _, e := range fleet.Endpoints {
		opt, err := endpoint.Options(e)
		if err != nil {
			return nil, errors.Join(err, fleet.Close())
		}
		dial := func() *redis.Client { return newClient(opt) }
		m := &external{
			commands: commands{client: dial(), dial: dial, user: e.Username, password: e.Password}, addr: e.Addr,
			destructive: o.Destructive,
		}
		fleet.Masters = append(fleet.Masters, m)
		ping, cancel := context.WithTimeout(ctx, insistence)
		err = m.client.Ping(ping).Err()
		cancel()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("masters: %v: %w", e, err), fleet.Close())
		}
	}
	return fleet, nil
}

func (m *external) Addr() string { return m.addr }

func (m *external) Can(action Action) error {
	has := Server
	if m.destructive {
		has |= Consent
	}
	return has.Has(action)
}

func (m *external) Inject(ctx context.Context, action Action, p Params) (Injection, error) {
	if err := m.Can(action); err != nil {
		return Injection{}, err
	}
	return m.inject(ctx, action, p)
}

func (m *external) Close() error { return m.client.Close() }
