// Package network puts a proxy into every path between a client and a master, so that each path can fail separately. It
// offers latency, jitter, little bandwidth, slow closing, silence, resets, slicing, a limit of data and refused
// connections. A fault acts in both directions or in one. Partitions are client × master matrices.
//
// The proxies are toxiproxy's, in this process or on a toxiproxy server that the caller names. Its toxics act on the
// data of TCP streams, not on packets. Toxiproxy's bandwidth toxic writes a trace line to zerolog's global logger when
// it is removed; a program that minds calls zerolog.SetGlobalLevel.
package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	client "github.com/Shopify/toxiproxy/v2/client"
	"golang.org/x/sync/errgroup"
)

// Direction is the stream that a toxic acts on.
type Direction uint8

// The directions.
const (
	// Both acts on requests and replies.
	Both Direction = iota
	// Requests acts on data from the client to the master.
	Requests
	// Replies acts on data from the master to the client.
	Replies
)

// Toxic is something that is wrong with a path. The constructors below make the useful ones.
type Toxic struct {
	// Name identifies it on its path. Network.Add chooses one.
	Name string
	// Type is toxiproxy's name for it, or "down".
	Type       string
	Direction  Direction
	Attributes map[string]int64
}

// Latency delays data by d plus or minus up to jitter, in the given direction, in whole milliseconds.
func Latency(dir Direction, d, jitter time.Duration) Toxic {
	return Toxic{
		Type: "latency", Direction: dir,
		Attributes: map[string]int64{"latency": d.Milliseconds(), "jitter": jitter.Milliseconds()},
	}
}

// Bandwidth limits the flow to kbPerSecond kilobytes a second.
func Bandwidth(dir Direction, kbPerSecond int64) Toxic {
	return Toxic{Type: "bandwidth", Direction: dir, Attributes: map[string]int64{"rate": kbPerSecond}}
}

// SlowClose delays the closing of connections.
func SlowClose(delay time.Duration) Toxic {
	return Toxic{Type: "slow_close", Attributes: map[string]int64{"delay": delay.Milliseconds()}}
}

// Silence drops all data. Connections are accepted and stay open; they are closed when it is removed.
func Silence(dir Direction) Toxic {
	return Toxic{Type: "timeout", Direction: dir, Attributes: map[string]int64{"timeout": 0}}
}

// Timeout drops all data and closes connections after d.
func Timeout(dir Direction, d time.Duration) Toxic {
	return Toxic{Type: "timeout", Direction: dir, Attributes: map[string]int64{"timeout": d.Milliseconds()}}
}

// ResetPeer resets connections (RST) after the first data, d later.
func ResetPeer(dir Direction, d time.Duration) Toxic {
	return Toxic{Type: "reset_peer", Direction: dir, Attributes: map[string]int64{"timeout": d.Milliseconds()}}
}

// Slicer cuts data into pieces of about size bytes, with a delay between them.
func Slicer(dir Direction, size int64, delay time.Duration) Toxic {
	return Toxic{
		Type: "slicer", Direction: dir,
		Attributes: map[string]int64{"average_size": size, "size_variation": size / 2, "delay": delay.Microseconds()},
	}
}

// LimitData closes a connection after that many bytes.
func LimitData(dir Direction, bytes int64) Toxic {
	return Toxic{Type: "limit_data", Direction: dir, Attributes: map[string]int64{"bytes": bytes}}
}

// Down closes connections and refuses new ones.
func Down() Toxic { return Toxic{Type: "down"} }

// SynDrop closes connections and neither accepts nor refuses new ones: a dial gets no answer, as when packets are lost
// or a listener's backlog is full. Proxies of an external toxiproxy server can't do that.
func SynDrop() Toxic { return Toxic{Type: "syn-drop"} }

// closes reports that the toxic acts on new connections, not on the data of existing ones.
func (t Toxic) closes() bool { return t.Type == "down" || t.Type == "syn-drop" }

type wire struct {
	Name       string           `json:"name"`
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Toxicity   float32          `json:"toxicity"`
	Attributes attributesOnWire `json:"attributes"`
}

type attributesOnWire map[string]any

func (t Toxic) wire() wire {
	w := wire{Name: t.Name, Type: t.Type, Stream: "downstream", Toxicity: 1, Attributes: attributesOnWire{}}
	if t.Direction == Requests {
		w.Stream = "upstream"
	}
	for k, v := range t.Attributes {
		w.Attributes[k] = v
	}
	return w
}

// String describes the toxic with its numbers.
func (t Toxic) String() string {
	var s strings.Builder
	s.WriteString(t.Type)
	switch t.Direction {
	case Requests:
		s.WriteString(" of requests")
	case Replies:
		s.WriteString(" of replies")
	}
	for _, k := range []string{"latency", "jitter", "rate", "delay", "timeout", "average_size", "bytes"} {
		if v, ok := t.Attributes[k]; ok && v != 0 {
			fmt.Fprintf(&s, " %s=%d", k, v)
		}
	}
	return s.String()
}

// Place is a port of a toxiproxy server that clients can reach from here.
type Place struct {
	// Listen is where a proxy there has to listen, for instance 0.0.0.0:21000.
	Listen string
	// Addr is how clients reach it, for instance 127.0.0.1:21000.
	Addr string
}

// Options describe a network.
type Options struct {
	// Clients is how many clients there are.
	Clients int
	// Upstreams are the masters' addresses, as the proxies reach them.
	Upstreams []string
	// API is the address of a toxiproxy server. Default: proxies in this process.
	API string
	// Places are where proxies on that server may listen, one for each client and master at least. Default: ports that
	// the server chooses, at addresses that must mean the same here as there.
	Places []Place
}

// Network is a proxy for each client and master. Its methods are safe for concurrent use.
type Network struct {
	proxies [][]proxy

	mu   sync.Mutex
	next int
	down map[Link]doors
}

// doors are how many Downs and SynDrops are on a path.
type doors struct{ refused, silent int }

// door is a proxy's behaviour towards new connections.
type door uint8

const (
	open door = iota
	refused
	silent
)

func (d doors) door() door {
	switch {
	case d.silent > 0:
		return silent
	case d.refused > 0:
		return refused
	default:
		return open
	}
}

// New makes the proxies. On failure none is left.
func New(ctx context.Context, o Options) (*Network, error) {
	n := &Network{down: make(map[Link]doors)}
	if paths := o.Clients * len(o.Upstreams); len(o.Places) > 0 && len(o.Places) < paths {
		return nil,
			fmt.Errorf("network: %d clients and %d masters need %d proxies, and the toxiproxy server has room for %d",
				o.Clients, len(o.Upstreams), paths, len(o.Places))
	}
	server := newServer()
	for c := range o.Clients {
		n.proxies = append(n.proxies, nil)
		for m, upstream := range o.Upstreams {
			var p proxy
			err := ctx.Err()
			name := fmt.Sprintf("redlock-chaos-client-%d-master-%d", c, m)
			switch {
			case err != nil:
			case o.API == "":
				p, err = newLocal(server, name, upstream)
			default:
				var place Place
				if len(o.Places) > 0 {
					place = o.Places[c*len(o.Upstreams)+m]
				}
				p, err = newRemote(client.NewClient(strings.TrimSuffix(o.API, "/")), name, place, upstream)
			}
			if err != nil {
				return nil, errors.Join(err, n.Close())
			}
			n.proxies[c] = append(n.proxies[c], p)
		}
	}
	return n, nil
}

// Addrs are the addresses at which a client reaches the masters, in the masters' order. They do not change.
func (n *Network) Addrs(client int) []string {
	out := make([]string, len(n.proxies[client]))
	for i, p := range n.proxies[client] {
		out[i] = p.addr()
	}
	return out
}

// Add puts a toxic on paths, all at once as far as that goes. Remove takes it off again; it is not nil and calling it
// again does nothing. After an error no path has it.
//
// A proxy that does not answer within 2 s is replaced by a new one on the same port, which ends its connections.
func (n *Network) Add(ctx context.Context, links []Link, t Toxic) (remove func() error, err error) {
	parts := []Toxic{t}
	if t.Direction == Both && !t.closes() {
		parts = []Toxic{t, t}
		parts[0].Direction, parts[1].Direction = Requests, Replies
	}
	n.mu.Lock()
	n.next++
	for i := range parts {
		parts[i].Name = fmt.Sprintf("%s-%d-%d", t.Type, n.next, i)
	}
	n.mu.Unlock()
	remove = sync.OnceValue(func() error {
		return n.each(links, func(l Link, p proxy) error { return n.takeOff(l, p, parts) })
	})
	if err = ctx.Err(); err == nil {
		err = n.each(links, func(l Link, p proxy) error { return n.putOn(l, p, parts) })
	}
	if err != nil {
		_ = remove()
		return func() error { return nil }, fmt.Errorf("network: %s: %w", t, err)
	}
	return remove, nil
}

func (n *Network) putOn(l Link, p proxy, parts []Toxic) error {
	for _, t := range parts {
		var err error
		if t.closes() {
			err = n.shift(l, p, t, 1)
		} else {
			err = p.add(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) takeOff(l Link, p proxy, parts []Toxic) error {
	var err error
	for _, t := range parts {
		if t.closes() {
			err = errors.Join(err, n.shift(l, p, t, -1))
		} else {
			err = errors.Join(err, p.remove(t.Name))
		}
	}
	return err
}

// shift counts the toxics that close a path: it is open again only when the last is removed.
func (n *Network) shift(l Link, p proxy, t Toxic, by int) error {
	n.mu.Lock()
	d := n.down[l]
	was := d.door()
	if t.Type == "down" {
		d.refused += by
	} else {
		d.silent += by
	}
	n.down[l] = d
	n.mu.Unlock()
	if was == d.door() {
		return nil
	}
	return p.enable(d.door())
}

// Can returns nil if the toxic is available on these proxies, or an error that says why not.
func (n *Network) Can(t Toxic) error {
	if t.Type != "syn-drop" {
		return nil
	}
	for _, row := range n.proxies {
		for _, p := range row {
			if _, own := p.(*local); !own {
				return fmt.Errorf("network: %s: %w", t, errors.ErrUnsupported)
			}
		}
	}
	return canSilence()
}

func (n *Network) each(links []Link, f func(Link, proxy) error) error {
	var group errgroup.Group
	for _, l := range links {
		if l.Client < 0 || l.Client >= len(n.proxies) || l.Master < 0 || l.Master >= len(n.proxies[l.Client]) {
			return fmt.Errorf("no path from client %d to master %d", l.Client, l.Master)
		}
		group.Go(func() error { return f(l, n.proxies[l.Client][l.Master]) })
	}
	return group.Wait()
}

// Replaced counts the proxies in this process that did not answer and were replaced.
func (n *Network) Replaced() int {
	total := 0
	for _, row := range n.proxies {
		for _, p := range row {
			if l, ok := p.(*local); ok {
				l.mu.Lock()
				total += l.stuck
				l.mu.Unlock()
			}
		}
	}
	return total
}

// Close ends all proxies and their connections.
func (n *Network) Close() error {
	var group errgroup.Group
	for _, row := range n.proxies {
		for _, p := range row {
			group.Go(p.close)
		}
	}
	return group.Wait()
}
