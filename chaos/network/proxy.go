package network

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	client "github.com/Shopify/toxiproxy/v2/client"
	"github.com/rs/zerolog"

	"github.com/seed-624411e5/redlock/internal/localport"
)

// proxy is the proxy of one path. Its methods are called one at a time.
type proxy interface {
	addr() string
	add(Toxic) error
	remove(name string) error
	enable(door) error
	close() error
}

// patience is the longest time for a change to a proxy. Toxiproxy can wait for ever for a connection after its client
// has stopped reading (its issue 558); the network replaces such a proxy.
const patience = 2 * time.Second

var errStuck = errors.New("network: the proxy does not answer")

// remotePatience is patience with a toxiproxy server: its proxies can't be replaced, so waiting longer loses nothing,
// and a change of all paths at once is many requests.
const remotePatience = 10 * time.Second

// bounded runs f and stops waiting for it after d.
func bounded(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return errStuck
	}
}

// local is a toxiproxy in this process.
type local struct {
	server   *toxiproxy.ApiServer
	name     string
	upstream string
	listen   string
	port     *localport.Port

	mu     sync.Mutex
	proxy  *toxiproxy.Proxy
	toxics []Toxic // the proxy's intended toxics, to restore them after a replacement
	door   door
	mute   *muteListener // listens in place of the proxy while the door is silent
	stuck  int
}

// newServer returns the only thing that the proxies of one network share: a logger that discards everything.
func newServer() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
}

// newLocal makes a proxy on a port that no client's connection is given while the proxy is down: it is to come back
// there.
func newLocal(server *toxiproxy.ApiServer, name, upstream string) (*local, error) {
	p := &local{server: server, name: name, upstream: upstream}
	var err error
	for range 3 { // who does not reserve ports may have been quicker
		if p.port, err = localport.Reserve(); err != nil {
			break
		}
		p.listen = p.port.Addr()
		p.proxy = toxiproxy.NewProxy(server, name, p.listen, upstream)
		if err = p.proxy.Start(); err == nil {
			return p, nil
		}
		err = errors.Join(err, p.port.Release())
	}
	return nil, fmt.Errorf("network: %w", err)
}

func (p *local) addr() string { return p.listen }

func (p *local) add(t Toxic) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toxics = append(p.toxics, t)
	return p.changeLocked(func(proxy *toxiproxy.Proxy) error { return addTo(proxy, t) })
}

// changeLocked changes the proxy, or replaces it if it does not answer.
func (p *local) changeLocked(change func(*toxiproxy.Proxy) error) error {
	proxy := p.proxy
	err := bounded(patience, func() error { return change(proxy) })
	if errors.Is(err, errStuck) {
		return p.replaceLocked()
	}
	return err
}

func addTo(proxy *toxiproxy.Proxy, t Toxic) error {
	body, err := json.Marshal(t.wire())
	if err != nil {
		return err
	}
	_, err = proxy.Toxics.AddToxicJson(bytes.NewReader(body))
	return err
}

func (p *local) remove(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toxics = slices.DeleteFunc(p.toxics, func(t Toxic) bool { return t.Name == name })
	return p.changeLocked(func(proxy *toxiproxy.Proxy) error {
		return proxy.Toxics.RemoveToxic(context.Background(), name)
	})
}

func (p *local) enable(to door) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.door = to
	p.mute.close()
	p.mute = nil
	err := p.changeLocked(func(proxy *toxiproxy.Proxy) error {
		if to != open {
			proxy.Stop()
			return nil
		}
		if err := startOn(proxy); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
			return err
		}
		return nil
	})
	if err == nil && to == silent {
		p.mute, err = listenMute(p.listen)
	}
	return err
}

// startOn starts a proxy. The previous proxy may still hold the port for a moment.
func startOn(proxy *toxiproxy.Proxy) error {
	deadline := time.Now().Add(patience / 2)
	for {
		err := proxy.Start()
		if _, busy := errors.AsType[*net.OpError](err); !busy || time.Now().After(deadline) {
			return err
		}
		<-time.After(5 * time.Millisecond)
	}
}

// replaceLocked puts a new proxy on the old one's port. The stuck one keeps its goroutines until its connections end;
// its listener closes first, so the port is free at once.
func (p *local) replaceLocked() error {
	p.stuck++
	old := p.proxy
	go old.Stop()
	p.proxy = toxiproxy.NewProxy(p.server, p.name, p.listen, p.upstream)
	for _, t := range p.toxics {
		if err := addTo(p.proxy, t); err != nil {
			return fmt.Errorf("network: replacing a stuck proxy: %w", err)
		}
	}
	if p.door != open {
		return nil
	}
	if err := startOn(p.proxy); err != nil {
		return fmt.Errorf("network: replacing a stuck proxy: %w", err)
	}
	return nil
}

func (p *local) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	proxy := p.proxy
	p.mute.close()
	p.mute = nil
	var released error
	if p.port != nil {
		released, p.port = p.port.Release(), nil
	}
	if err := bounded(patience, func() error { proxy.Stop(); return nil }); err != nil {
		return errors.Join(fmt.Errorf("%w: %s", err, p.name), released)
	}
	return released
}

// remote is a proxy on an external toxiproxy server.
type remote struct {
	proxy *client.Proxy
	at    string
}

func newRemote(api *client.Client, name string, place Place, upstream string) (*remote, error) {
	p, err := api.CreateProxy(name, place.Listen, upstream)
	if err != nil {
		return nil, fmt.Errorf("network: toxiproxy: %w", err)
	}
	return &remote{proxy: p, at: cmp.Or(place.Addr, p.Listen)}, nil
}

func (p *remote) addr() string { return p.at }

func (p *remote) add(t Toxic) error {
	w := t.wire()
	return bounded(remotePatience, func() error {
		_, err := p.proxy.AddToxic(w.Name, w.Type, w.Stream, w.Toxicity, client.Attributes(w.Attributes))
		return err
	})
}

func (p *remote) remove(name string) error {
	return bounded(remotePatience, func() error { return p.proxy.RemoveToxic(name) })
}

func (p *remote) enable(to door) error {
	return bounded(remotePatience, func() error {
		switch to {
		case open:
			return p.proxy.Enable()
		case refused:
			return p.proxy.Disable()
		default:
			return fmt.Errorf("network: syn-drop on a toxiproxy server: %w", errors.ErrUnsupported)
		}
	})
}

func (p *remote) close() error { return bounded(remotePatience, p.proxy.Delete) }
