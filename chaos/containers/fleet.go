package containers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	chaosnet "github.com/seed-624411e5/redlock/chaos/network"
)

const (
	apiPort = 8474
	// firstPlace is the first port, inside its container, at which toxiproxy listens for clients.
	firstPlace = 21000
	// fleetLabel is on everything that a fleet made; its value is the fleet's ID.
	fleetLabel = "redlock.chaos.fleet"
)

// Backend returns a backend that starts masters and a toxiproxy as containers. Opening it takes some seconds, and
// minutes when images must be pulled.
func Backend(o Options) masters.Factory {
	o = o.withDefaults()
	return func(ctx context.Context, want masters.Options) (*masters.Fleet, error) { return open(ctx, o, want) }
}

// fleet is the result of open.
type fleet struct {
	*engine
	options Options
	want    masters.Options
	id      string
	labels  map[string]string
	// locks is the network between proxies and masters. control leads to the masters past the proxies.
	locks, control subnet
	watchdog       *watchdog
	nodes          []*node
	// proxyAddr is toxiproxy's API, places its ports that are published.
	proxyAddr string
	places    []chaosnet.Place
	out       *masters.Fleet
}

func open(ctx context.Context, o Options, want masters.Options) (_ *masters.Fleet, err error) {
	e, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	id := strings.ToLower(rand.Text()[:10])
	f := &fleet{engine: e, options: o, want: want, id: id, labels: maps.Clone(testcontainers.GenericLabels())}
	f.labels[fleetLabel] = id
	f.out = &masters.Fleet{
		Backend: "containers", Cleanup: f.remove, Notes: []string{"clock steps are emulated by moving ttls"},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.out.Close())
		}
	}()
	var why error
	if f.watchdog, why = startWatchdog(ctx, e.api.DaemonHost(), fleetLabel+"="+id); why != nil {
		f.out.Notes = append(f.out.Notes, "if this process is killed, only Ryuk removes its containers: "+why.Error())
	}
	for _, image := range []string{o.RedisImage, o.ToxiproxyImage} {
		if err := e.have(ctx, image); err != nil {
			return nil, err
		}
	}
	// An engine may still carry out an abandoned request to create something, even after the removal.
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), openPatience)
	defer cancel()
	if f.locks, err = f.newSubnet(whole, "locks", true); err != nil {
		return nil, err
	}
	if f.control, err = f.newSubnet(whole, "control", false); err != nil {
		return nil, err
	}
	if err := errors.Join(f.startAll(whole), context.Cause(ctx)); err != nil {
		return nil, err
	}
	if err := f.assemble(ctx); err != nil {
		return nil, fmt.Errorf("%w%s", err, e.hint())
	}
	return f.out, nil
}

// remove removes everything and ends the watchdog. The watchdog then removes the rest, if there is any.
func (f *fleet) remove() error {
	err := f.removeAll(fleetLabel + "=" + f.id)
	if f.watchdog != nil {
		err = errors.Join(err, f.watchdog.end(err == nil))
	}
	return errors.Join(err, f.close())
}

func (f *fleet) name(what string) string { return "redlock-chaos-" + f.id + "-" + what }

// openPatience bounds the start of everything.
const openPatience = 2 * time.Minute

// startAll starts toxiproxy and the masters side by side.
func (f *fleet) startAll(ctx context.Context) error {
	f.nodes = make([]*node, f.want.N)
	var group errgroup.Group // without a context, so that started work ends
	group.Go(func() error { return f.startProxy(ctx) })
	for i := range f.nodes {
		group.Go(func() error { return f.startMaster(ctx, i) })
	}
	return group.Wait()
}

// startMaster starts a server with fixed addresses on both networks. It keeps them through all faults.
func (f *fleet) startMaster(ctx context.Context, i int) error {
	n := &node{
		api: f.api, name: f.name(fmt.Sprintf("master-%d", i)), networkID: f.locks.id,
		endpoint: endpoint(f.locks.host(10 + i)),
	}
	var config *container.HostConfig
	request := testcontainers.ContainerRequest{
		Name: n.name, Image: f.options.RedisImage, Labels: f.labels, Cmd: f.serverCommand(),
		Networks: []string{f.control.name},
		HostConfigModifier: func(hc *container.HostConfig) {
			config = hc
			data := mount.Mount{Type: mount.TypeTmpfs, Target: "/data"}
			if f.want.AOF {
				data = mount.Mount{
					Type: mount.TypeVolume, Target: "/data", VolumeOptions: &mount.VolumeOptions{Labels: f.labels},
				}
			}
			hc.Mounts = append(hc.Mounts, data)
		},
		// Testcontainers publishes the ports that the image exposes, on all addresses. No client
		// may bypass the proxies, so nothing is published.
		LifecycleHooks: []testcontainers.ContainerLifecycleHooks{{PreCreates: []testcontainers.ContainerRequestHook{
			func(context.Context, testcontainers.ContainerRequest) error { config.PortBindings = nil; return nil },
		}}},
		EndpointSettingsModifier: f.control.settle(10 + i),
	}
	n.remake = func(ctx context.Context, plugged bool) (string, error) {
		own := request // CreateContainer writes to its argument
		own.Labels = maps.Clone(f.labels)
		if !plugged {
			return f.run(ctx, own, "", nil)
		}
		return f.run(ctx, own, n.networkID, n.endpoint)
	}
	var err error
	if n.id, err = n.remake(ctx, true); err != nil {
		return fmt.Errorf("containers: master %d: %w", i, err)
	}
	f.nodes[i] = n
	return nil
}

func (f *fleet) serverCommand() []string {
	aof := "no"
	if f.want.AOF {
		aof = "yes"
	}
	return []string{
		f.options.Server, "--dir", "/data", "--save", "", "--appendonly", aof, "--appendfsync", "always",
		"--protected-mode", "no",
	}
}

// startProxy starts toxiproxy with a published port for each client and master, and two more for each master: for
// looking at it and for probing how clients reach it.
func (f *fleet) startProxy(ctx context.Context) error {
	ports := []uint16{apiPort}
	for i := range f.want.N * (f.want.Clients + 2) {
		ports = append(ports, uint16(firstPlace+i))
	}
	bindings := make(network.PortMap, len(ports))
	exposed := make([]string, len(ports))
	for i, p := range ports {
		exposed[i] = fmt.Sprintf("%d/tcp", p)
		bindings[network.MustParsePort(exposed[i])] = []network.PortBinding{{HostIP: f.bind, HostPort: "0"}}
	}
	request := testcontainers.ContainerRequest{
		Name: f.name("toxiproxy"), Image: f.options.ToxiproxyImage, Labels: maps.Clone(f.labels),
		Cmd: []string{"-host=0.0.0.0"},
		Env: map[string]string{"LOG_LEVEL": "warn"}, ExposedPorts: exposed, Networks: []string{f.control.name},
		HostConfigModifier:       func(hc *container.HostConfig) { hc.PortBindings = bindings },
		EndpointSettingsModifier: f.control.settle(2),
	}
	id, err := f.run(ctx, request, f.locks.id, endpoint(f.locks.host(2)))
	for try := 1; try < 10 && portTaken(err); try++ {
		if _, err = f.api.ContainerRemove(ctx, request.Name, client.ContainerRemoveOptions{Force: true}); err == nil {
			id, err = f.run(ctx, request, f.locks.id, endpoint(f.locks.host(2)))
		}
	}
	if err != nil {
		return fmt.Errorf("containers: toxiproxy: %w", err)
	}
	c, err := f.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("containers: toxiproxy: %w", err)
	}
	for i, p := range ports {
		addr := f.published(c.Container.NetworkSettings.Ports[network.MustParsePort(exposed[i])])
		if addr == "" {
			return fmt.Errorf("containers: toxiproxy: port %d is not published", p)
		}
		if p == apiPort {
			f.proxyAddr = addr
			continue
		}
		f.places = append(f.places, chaosnet.Place{Listen: fmt.Sprintf("0.0.0.0:%d", p), Addr: addr})
	}
	return nil
}

// portTaken reports whether the engine tried to publish on a port that another program used: the engine takes its ports
// from the range that connections use too. It chooses other ports at the next try.
func portTaken(err error) bool {
	return err != nil &&
		(strings.Contains(err.Error(), "address already in use") ||
			strings.Contains(err.Error(), "port is already allocated"))
}

// run creates a container, plugs it into a second network if one is named, and starts it.
func (f *fleet) run(ctx context.Context, request testcontainers.ContainerRequest, second string,
	settings *network.EndpointSettings,
) (string, error) {
	c, err := f.provider.CreateContainer(ctx, request)
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	id := c.GetContainerID()
	if second != "" {
		_, err = f.api.NetworkConnect(ctx, second,
			client.NetworkConnectOptions{Container: id, EndpointConfig: settings.Copy()})
		if err != nil {
			return "", fmt.Errorf("plug in: %w", err)
		}
	}
	if err := c.Start(ctx); err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	return id, nil
}

// assemble makes a proxy to each master over the control network, which no fault touches, and then the masters.
func (f *fleet) assemble(ctx context.Context) error {
	url := "http://" + f.proxyAddr
	api := toxiproxy.NewClient(url)
	var err error
	if !machine.Poll(ctx, startPatience, func() bool { _, err = api.Proxies(); return err == nil }) {
		return fmt.Errorf("containers: toxiproxy at %s: %w", f.proxyAddr, err)
	}
	members := make([]member, len(f.nodes))
	for i, n := range f.nodes {
		place := f.places[i]
		_, err := api.CreateProxy(fmt.Sprintf("redlock-chaos-control-%d", i), place.Listen,
			redisAt(f.control.host(10+i).String()))
		if err != nil {
			return fmt.Errorf("containers: toxiproxy: %w", err)
		}
		members[i] = member{
			node: n, control: place.Addr, upstream: redisAt(f.locks.host(10 + i).String()), keeps: f.want.AOF,
		}
	}
	return attach(ctx, f.out, url, members, f.places[len(members):], f.want.AOF)
}
