package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/seed-624411e5/redlock/chaos/masters"
)

const (
	// enginePatience bounds the first question to an engine.
	enginePatience = 20 * time.Second
	// pullPatience bounds the pulling of an image. Without a bound Testcontainers tries a registry that can't be
	// reached for a quarter of an hour.
	pullPatience = 3 * time.Minute
	// removePatience bounds the removal of everything.
	removePatience = time.Minute
)

// engine is a Docker engine and how its published ports are reached.
type engine struct {
	provider *testcontainers.DockerProvider
	api      client.APIClient
	// host is where published ports are; bind is the engine's address to publish them on.
	host string
	bind netip.Addr
}

// connect asks the engine that Testcontainers finds for a sign of life.
func connect(ctx context.Context) (*engine, error) {
	quiet := testcontainers.DockerProviderOptionFunc(func(o *testcontainers.DockerProviderOptions) {
		o.Logger = log.NewNoopLogger()
	})
	// Without a name for the default network, Testcontainers makes one, plugs every container into it, and leaves it.
	provider, err := testcontainers.NewDockerProvider(quiet,
		testcontainers.WithDefaultBridgeNetwork(testcontainers.Bridge))
	if err != nil {
		return nil, fmt.Errorf("%w: no Docker engine: %w", masters.ErrUnavailable, err)
	}
	e := &engine{provider: provider, api: provider.Client()}
	ctx, cancel := context.WithTimeout(ctx, enginePatience)
	defer cancel()
	if _, err := e.api.Ping(ctx, client.PingOptions{}); err != nil {
		return nil,
			errors.Join(fmt.Errorf("%w: no Docker engine answers at %s: %w", masters.ErrUnavailable, e.api.DaemonHost(),
				err), e.close())
	}
	if e.host, err = provider.DaemonHost(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("containers: where are the engine's ports: %w", err), e.close())
	}
	e.host, e.bind = reached(e.host)
	return e, nil
}

// reached returns how published ports are reached and what to publish them on: nowhere else than on this machine, if
// the engine is on it.
func reached(host string) (string, netip.Addr) {
	addr, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && addr.IsLoopback() {
		return "127.0.0.1", netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return host, netip.IPv4Unspecified()
}

func (e *engine) close() error { return e.provider.Close() }

// published is the address here of a port that a container publishes, or an empty one.
func (e *engine) published(bindings []network.PortBinding) string {
	for _, b := range bindings {
		if b.HostPort == "" || b.HostIP.Is6() {
			continue
		}
		host := e.host
		if b.HostIP.IsValid() && !b.HostIP.IsUnspecified() && !b.HostIP.IsLoopback() {
			host = b.HostIP.String()
		}
		return net.JoinHostPort(host, b.HostPort)
	}
	return ""
}

// hint suggests a cause when containers run and can't be reached.
func (e *engine) hint() string {
	if e.bind.IsLoopback() {
		return ""
	}
	return fmt.Sprintf(" (their ports are looked for at %s; if the engine runs on this machine, set "+
		"TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1)", e.host)
}

// have makes sure that an image is there.
func (e *engine) have(ctx context.Context, image string) error {
	if _, err := e.api.ImageInspect(ctx, image); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pullPatience)
	defer cancel()
	if err := e.provider.PullImage(ctx, image); err != nil {
		return fmt.Errorf("%w: image %s is not there and can't be pulled; chaos/images/build makes one where no "+
			"registry is reached: %w", masters.ErrUnavailable, image, err)
	}
	return nil
}

// removeAll removes every container, with its anonymous volumes, every network and every volume that has the label.
func (e *engine) removeAll(label string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	labelled := make(client.Filters).Add("label", label)
	found, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled})
	err = explain(err, "list containers")
	failed := make([]error, len(found.Items)+1)
	failed[len(found.Items)] = err
	var group sync.WaitGroup
	for i, c := range found.Items {
		group.Go(func() {
			_, err := e.api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			failed[i] = explain(err, "remove container "+c.ID)
		})
	}
	group.Wait()
	err = errors.Join(failed...)
	networks, listErr := e.api.NetworkList(ctx, client.NetworkListOptions{Filters: labelled})
	err = errors.Join(err, explain(listErr, "list networks"))
	for _, n := range networks.Items {
		_, removeErr := e.api.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		err = errors.Join(err, explain(removeErr, "remove network "+n.Name))
	}
	volumes, listErr := e.api.VolumeList(ctx, client.VolumeListOptions{Filters: labelled})
	err = errors.Join(err, explain(listErr, "list volumes"))
	for _, v := range volumes.Items {
		_, removeErr := e.api.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true})
		err = errors.Join(err, explain(removeErr, "remove volume "+v.Name))
	}
	return err
}

func explain(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("containers: %s: %w", what, err)
}
