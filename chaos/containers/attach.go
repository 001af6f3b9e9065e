package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
)

const redisPort = "6379"

func redisAt(host string) string { return net.JoinHostPort(host, redisPort) }

// member is a container that will be a master.
type member struct {
	node *node
	// control is its address from here past all faults, upstream its address as the proxies reach it.
	control, upstream string
	// keeps reports whether it keeps its data across a kill.
	keeps bool
}

// attach makes a fleet's masters of the members. The toxiproxy server at url makes the proxies, at the given places.
// attach takes the last places for its own probes, and returns when every server answers over both networks.
func attach(ctx context.Context, out *masters.Fleet, url string, members []member, places []network.Place,
	mustKeep bool,
) error {
	api := toxiproxy.NewClient(url)
	if len(places) <= len(members) {
		return fmt.Errorf("containers: toxiproxy publishes %d ports, which is too few for %d masters", len(places),
			len(members))
	}
	room := len(places) - len(members)
	var addrs []string
	for _, c := range members {
		addrs = append(addrs, c.control)
		out.Upstreams = append(out.Upstreams, c.upstream)
	}
	var group errgroup.Group
	probes := make([]string, len(members))
	for i, c := range members {
		group.Go(func() error {
			var err error
			if probes[i], err = newProbe(api, fmt.Sprint(i), places[room+i], c.upstream); err != nil {
				return err
			}
			if !awaits(ctx, probes[i]) || !awaits(ctx, c.control) {
				return fmt.Errorf("containers: %s does not answer at %s and %s", c.node.name, c.control,
					places[room+i].Addr)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	plain, err := masters.OpenExternal(ctx, masters.Options{Addrs: addrs, Destructive: true})
	if err != nil {
		return err
	}
	for i, c := range members {
		out.Masters = append(out.Masters, &master{
			Master: plain.Masters[i], node: c.node, keeps: c.keeps, mustKeep: mustKeep, probe: probes[i],
		})
	}
	out.Proxy, out.Places = url, places[:room]
	return nil
}

const probePrefix = "redlock-chaos-probe-"

// newProbe returns an address that reaches a server as the clients do, through a proxy that is never hurt.
func newProbe(api *toxiproxy.Client, name string, place network.Place, upstream string) (addr string, _ error) {
	if _, err := api.CreateProxy(probePrefix+name, place.Listen, upstream); err != nil {
		return "", fmt.Errorf("containers: toxiproxy: %w", err)
	}
	return place.Addr, nil
}

func awaits(ctx context.Context, addr string) bool {
	return machine.Poll(ctx, startPatience, func() bool { return answers(ctx, addr, time.Second) })
}

// answers reports whether a PING on a new connection is answered in time.
func answers(ctx context.Context, addr string, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	err = conn.SetDeadline(deadline)
	if err == nil {
		_, err = conn.Write([]byte("PING\r\n"))
	}
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err == nil
}

// refuseOthers fails when a toxiproxy server has proxies of another run.
func refuseOthers(url string) error {
	all, err := toxiproxy.NewClient(url).Proxies()
	if err != nil {
		return fmt.Errorf("toxiproxy: %w", err)
	}
	for name := range all {
		if strings.HasPrefix(name, "redlock-chaos-") {
			return fmt.Errorf("its toxiproxy is in use by another run (%s)", name)
		}
	}
	return nil
}

// dismiss removes the probes.
func dismiss(url string) error {
	all, err := toxiproxy.NewClient(url).Proxies()
	for name, p := range all {
		if strings.HasPrefix(name, probePrefix) {
			err = errors.Join(err, p.Delete())
		}
	}
	return err
}
