package containers

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// subnet is one of the fleet's networks, with addresses that the fleet assigns.
type subnet struct {
	id, name string
	prefix   netip.Prefix
}

// newSubnet makes a network. An engine assigns requested addresses only in networks with a requested range, but the
// engine knows best which range is free. So newSubnet lets the engine choose a range, and then requests that range.
func (f *fleet) newSubnet(ctx context.Context, what string, internal bool) (subnet, error) {
	s := subnet{name: f.name(what)}
	options := client.NetworkCreateOptions{Driver: "bridge", Internal: internal, Labels: f.labels}
	var err error
	for range 5 { // another network may get the range in between
		var chosen client.NetworkInspectResult
		var made client.NetworkCreateResult
		options.IPAM = nil
		if made, err = f.api.NetworkCreate(ctx, s.name, options); err != nil {
			break
		}
		if chosen, err = f.api.NetworkInspect(ctx, made.ID, client.NetworkInspectOptions{}); err != nil {
			break
		}
		if s.prefix, err = rangeOf(chosen.Network); err != nil {
			break
		}
		if _, err = f.api.NetworkRemove(ctx, made.ID, client.NetworkRemoveOptions{}); err != nil {
			break
		}
		options.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: s.prefix}}}
		if made, err = f.api.NetworkCreate(ctx, s.name, options); err == nil {
			s.id = made.ID
			return s, nil
		}
	}
	return s, explain(err, "make a network")
}

func rangeOf(n network.Inspect) (netip.Prefix, error) {
	i := slices.IndexFunc(n.IPAM.Config, func(c network.IPAMConfig) bool { return c.Subnet.Addr().Is4() })
	if i < 0 {
		return netip.Prefix{}, fmt.Errorf("network %s has no IPv4 range", n.Name)
	}
	return n.IPAM.Config[i].Subnet, nil
}

// host is the nth address.
func (s subnet) host(nth int) netip.Addr {
	a := s.prefix.Masked().Addr()
	for range nth {
		a = a.Next()
	}
	return a
}

// settle returns a modifier that gives a container the nth address.
func (s subnet) settle(nth int) func(map[string]*network.EndpointSettings) {
	return func(all map[string]*network.EndpointSettings) { all[s.name] = endpoint(s.host(nth)) }
}

func endpoint(addr netip.Addr) *network.EndpointSettings {
	return &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: addr}}
}
