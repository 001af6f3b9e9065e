package containers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	chaosnet "github.com/seed-624411e5/redlock/chaos/network"
)

const (
	// roleLabel gives the purpose of a service in a compose file. The backend touches only services with this label.
	roleLabel = "redlock.chaos.role"
	// The roles: a server without persistence, one that fsyncs always, and the proxies.
	roleMaster    = "master"
	roleMasterAOF = "master-aof"
	roleProxy     = "toxiproxy"

	projectLabel = "com.docker.compose.project"
	serviceLabel = "com.docker.compose.service"
	// healthPatience is how long services may take to become healthy.
	healthPatience = time.Minute
)

// Compose returns a backend that uses the services of a running compose file. It flushes, pauses,
// kills and unplugs the services labelled redlock.chaos.role "master" or "master-aof", and uses the
// service labelled "toxiproxy". All services keep running afterwards.
//
// The masters with AOF serve plans that need data to survive a kill; the others serve all other
// plans. The compose command (docker compose, or else docker-compose) chooses the project;
// COMPOSE_PROJECT_NAME counts. Options.Addrs, Proxy and Destructive are not used.
func Compose(file string) masters.Factory {
	return func(ctx context.Context, want masters.Options) (*masters.Fleet, error) {
		e, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		p := &project{engine: e, file: file}
		out, err := p.open(ctx, want)
		if err != nil {
			return nil, errors.Join(err, p.leave())
		}
		return out, nil
	}
}

// project is a running compose project.
type project struct {
	*engine
	file     string
	name     string
	services []container.InspectResponse
	// url is the toxiproxy server's API once it has been found.
	url string
}

func (p *project) open(ctx context.Context, want masters.Options) (*masters.Fleet, error) {
	if err := p.find(ctx); err != nil {
		return nil, err
	}
	proxies := p.of(roleProxy)
	if len(proxies) != 1 {
		return nil, fmt.Errorf("containers: %s has %d services labelled %s: %s, want 1", p.file, len(proxies),
			roleLabel, roleProxy)
	}
	chosen, keeps := p.choose(want)
	if len(chosen) < want.N {
		return nil, fmt.Errorf("containers: of %s %d masters are running, and %d are wanted", p.file, len(chosen),
			want.N)
	}
	url, places := p.proxyPorts(proxies[0])
	if url == "" {
		return nil, fmt.Errorf("containers: %s: toxiproxy does not publish its API, port %d", p.file, apiPort)
	}
	out := &masters.Fleet{
		Backend: "external", Cleanup: p.leave, Notes: []string{"clock steps are emulated by moving ttls"},
	}
	var members []member
	for _, c := range chosen[:want.N] {
		m, err := p.enlist(c, proxies[0], keeps)
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	if err := p.claim(url); err != nil {
		return nil, err
	}
	if err := attach(ctx, out, url, members, places, want.AOF); err != nil {
		return nil, errors.Join(fmt.Errorf("%w%s", err, p.hint()), out.Close())
	}
	return out, p.empty(ctx, out)
}

// find lists the project's labelled containers and waits until they are healthy.
func (p *project) find(ctx context.Context) error {
	id, err := composeID(ctx, p.file)
	if err != nil {
		return err
	}
	one, err := p.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil || one.Container.Config == nil {
		return fmt.Errorf("containers: %s: %w", p.file,
			errors.Join(err, errors.New("nothing is known about its containers")))
	}
	p.name = one.Container.Config.Labels[projectLabel]
	var unhealthy string
	var hopeless bool
	machine.Poll(ctx, healthPatience, func() bool {
		p.services, unhealthy, hopeless, err = p.look(ctx)
		return err != nil || unhealthy == "" || hopeless
	})
	switch {
	case err != nil:
		return fmt.Errorf("containers: %s: %w", p.file, err)
	case unhealthy != "":
		return fmt.Errorf("containers: %s: %s; docker compose -f %s up -d --force-recreate starts everything afresh",
			p.file, unhealthy, p.file)
	}
	return nil
}

// look inspects the labelled containers. If one is not healthy, look describes its problem and
// reports whether waiting is hopeless.
func (p *project) look(ctx context.Context) (found []container.InspectResponse, unhealthy string, hopeless bool,
	err error,
) {
	filters := make(client.Filters).Add("label", projectLabel+"="+p.name, roleLabel)
	list, err := p.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, "", false, err
	}
	for _, item := range list.Items {
		result, err := p.api.ContainerInspect(ctx, item.ID, client.ContainerInspectOptions{})
		c := result.Container
		if err != nil || c.State == nil || c.Config == nil || c.NetworkSettings == nil || c.HostConfig == nil {
			return nil, "", false,
				fmt.Errorf("container %s: %w", item.ID, errors.Join(err, errors.New("the engine does not describe it")))
		}
		switch {
		case c.State.Paused || !c.State.Running:
			hopeless = true
			unhealthy = service(c) + " is " + string(c.State.Status)
		case c.State.Health != nil && c.State.Health.Status != container.Healthy &&
			c.State.Health.Status != container.NoHealthcheck:
			unhealthy = service(c) + " is " + string(c.State.Health.Status)
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b container.InspectResponse) int {
		// master-10 after master-9
		return cmp.Or(cmp.Compare(len(service(a)), len(service(b))), cmp.Compare(service(a), service(b)))
	})
	return found, unhealthy, hopeless, nil
}

func service(c container.InspectResponse) string { return c.Config.Labels[serviceLabel] }

func (p *project) of(role string) []container.InspectResponse {
	return slices.DeleteFunc(slices.Clone(p.services), func(c container.InspectResponse) bool {
		return c.Config.Labels[roleLabel] != role
	})
}

// choose takes the masters with persistence where the plan needs them, if they are running.
func (p *project) choose(want masters.Options) (chosen []container.InspectResponse, keeps bool) {
	plain, aof := p.of(roleMaster), p.of(roleMasterAOF)
	if len(aof) >= want.N && (want.AOF || len(plain) < want.N) {
		return aof, true
	}
	return plain, false
}

// proxyPorts are the address of toxiproxy's API and its other published ports.
func (p *project) proxyPorts(c container.InspectResponse) (url string, places []chaosnet.Place) {
	ports := make([]network.Port, 0, len(c.NetworkSettings.Ports))
	for port := range c.NetworkSettings.Ports {
		ports = append(ports, port)
	}
	slices.SortFunc(ports, func(a, b network.Port) int { return cmp.Compare(a.Num(), b.Num()) })
	for _, port := range ports {
		addr := p.published(c.NetworkSettings.Ports[port])
		switch {
		case addr == "":
		case port.Num() == apiPort:
			url = "http://" + addr
		default:
			places = append(places, chaosnet.Place{Listen: "0.0.0.0:" + port.Port(), Addr: addr})
		}
	}
	return url, places
}

// enlist describes a service as a master.
func (p *project) enlist(c, proxy container.InspectResponse, keeps bool) (member, error) {
	networkID, upstream := "", service(c)
	socket := &network.EndpointSettings{Aliases: []string{service(c)}}
	for name, settings := range c.NetworkSettings.Networks {
		if _, shared := proxy.NetworkSettings.Networks[name]; !shared || networkID != "" {
			continue
		}
		networkID = settings.NetworkID
		if fixed := settings.IPAMConfig; fixed != nil && fixed.IPv4Address.IsValid() {
			upstream, socket.IPAMConfig = fixed.IPv4Address.String(), fixed.Copy()
		}
	}
	control := p.published(c.NetworkSettings.Ports[network.MustParsePort(redisPort+"/tcp")])
	switch {
	case networkID == "":
		return member{}, fmt.Errorf("containers: %s: %s and toxiproxy have no network in common", p.file, service(c))
	case control == "":
		return member{}, fmt.Errorf("containers: %s: %s does not publish port %s", p.file, service(c), redisPort)
	}
	n := &node{api: p.api, id: c.ID, name: service(c), networkID: networkID, endpoint: socket}
	return member{node: n, control: control, upstream: redisAt(upstream), keeps: keeps}, nil
}

// claim refuses a toxiproxy that another run is using, or was when it was killed.
func (p *project) claim(url string) error {
	if err := refuseOthers(url); err != nil {
		return fmt.Errorf("containers: %s: %w; if that run was killed, docker compose -f %s restart %s ends its "+
			"proxies", p.file, err, p.file, service(p.of(roleProxy)[0]))
	}
	p.url = url
	return nil
}

// empty deletes the keys of earlier runs on the masters.
func (p *project) empty(ctx context.Context, out *masters.Fleet) error {
	for _, m := range out.Masters {
		if _, err := m.Inject(ctx, masters.FlushAll, masters.Params{}); err != nil {
			return errors.Join(fmt.Errorf("containers: %s: %w", p.file, err), out.Close())
		}
	}
	return nil
}

// leave removes the probes and leaves all services running.
func (p *project) leave() error {
	var err error
	if p.url != "" {
		err = dismiss(p.url)
		p.url = ""
	}
	return errors.Join(err, p.close())
}

// composeID asks the compose command for one of a file's containers.
func composeID(ctx context.Context, file string) (string, error) {
	command, err := composeCommand(ctx)
	if err != nil {
		return "", err
	}
	ids, err := output(ctx, append(command, "-f", file, "ps", "-q"))
	if err != nil {
		return "", fmt.Errorf("containers: %s: %w", file, err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(ids), "\n")
	if id == "" {
		return "",
			fmt.Errorf("containers: nothing of %s is running; %s -f %s up -d starts it", file,
				strings.Join(command, " "), file)
	}
	return id, nil
}

// composeCommand finds version 2, or version 1.
func composeCommand(ctx context.Context) ([]string, error) {
	var tried error
	for _, command := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		_, err := output(ctx, append(slices.Clone(command), "version"))
		if err == nil {
			return command, nil
		}
		tried = errors.Join(tried, err)
	}
	return nil, fmt.Errorf("%w: no compose command: %w", masters.ErrUnavailable, tried)
}

// output runs a command; the error has the first line of the command's output.
func output(ctx context.Context, command []string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(says.String()), "\n")
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, line)
	}
	return string(out), nil
}
