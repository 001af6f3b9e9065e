package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/clients"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// open gets the run its masters, a network around them, and its clients.
func (r *run) open(ctx context.Context) error {
	options := r.cfg.Options
	options.N, options.Clients, options.AOF = r.plan.Masters, r.plan.Clients, r.plan.AOF || options.AOF
	options.Secure = r.plan.TLS || options.Secure
	var err error
	if r.fleet, err = r.cfg.Backends.Open(ctx, r.cfg.Backend, options); err != nil {
		return err
	}
	r.hide = endpoint.Hide(r.fleet.Reach())
	if err := r.replan(len(r.fleet.Masters)); err != nil {
		return err
	}
	r.notes = append(r.notes, r.fleet.Notes...)
	if asked := r.cfg.Masters; asked != 0 && asked != r.plan.Masters {
		r.notes = append(r.notes,
			fmt.Sprintf("there are %d masters, by the plan, and %d were asked for", r.plan.Masters, asked))
	}
	upstreams := r.fleet.Upstreams
	if len(upstreams) == 0 {
		upstreams = r.fleet.Addrs()
	}
	r.network, err = network.New(ctx, network.Options{
		Clients: r.plan.Clients, Upstreams: upstreams, API: r.fleet.Proxy, Places: r.fleet.Places,
	})
	if err != nil {
		return err
	}
	if slices.Contains(r.plan.FaultNames(), plan.NoName) {
		if r.names, err = network.NewNames(r.network); err != nil {
			return err
		}
	}
	origin := workload.Monotonic()
	r.recorder = history.NewRecorder(func() int64 { return workload.Monotonic() - origin })
	r.checked, r.unchecked = workload.NewRegister(r.recorder, true), workload.NewRegister(r.recorder, false)
	r.votes = newVotes(r.recorder.Now, r.plan.Masters, time.Duration(r.plan.Duration)+r.limits().Tail)
	r.clients.Recorder = r.recorder
	r.clients.Children = &clients.Children{
		Recorder: r.recorder, Rand: rand.New(rand.NewPCG(r.plan.Seed, 3)),
		Options: func(client, nth int) workload.ChildOptions {
			return workload.ChildOptions{
				Subject: r.cfg.Subject.Name(), Client: client, Masters: r.begins(client), Profile: r.profile,
				Seed: r.plan.Seed + uint64(nth), Origin: origin, Nth: nth, Checked: r.checked, Unchecked: r.unchecked,
				Clock: r.clockOf(client),
			}
		},
	}
	return r.openClients(ctx)
}

// reaches is how a client reaches the masters: through its proxies.
func (r *run) reaches(client int) []endpoint.Endpoint {
	all := r.fleet.Reach()
	for i, addr := range r.network.Addrs(client) {
		if r.names != nil {
			addr, all[i].Resolver = r.names.Of(network.Link{Client: client, Master: i}, addr), r.names.Addr()
		}
		all[i] = all[i].Via(addr)
	}
	return all
}

// replan draws the plan again if the number of masters differs from the plan's: an external fleet
// has a fixed number. A plan that the caller gave must fit without changes.
func (r *run) replan(masters int) error {
	planned := r.plan.Masters
	if masters == planned {
		return nil
	}
	if r.cfg.given {
		r.plan.Masters = masters
		if err := r.plan.Complete(); err != nil {
			return fmt.Errorf("there are %d masters, and the plan is for %d: %w", masters, planned, err)
		}
		return nil
	}
	if r.cfg.Masters != 0 && r.cfg.Masters != masters {
		return fmt.Errorf("there are %d masters, and %d were asked for", masters, r.cfg.Masters)
	}
	byDefault := r.cfg.Replay == r.cfg.replay()
	r.cfg.Masters = masters
	if err := r.cfg.drawPlan(); err != nil {
		return err
	}
	if takes := r.cfg.Plan.Masters; takes != masters {
		return fmt.Errorf("scenario %s takes %d masters at least, and there are %d", r.cfg.Plan.Scenario, takes,
			masters)
	}
	r.plan = r.cfg.Plan
	if byDefault {
		r.cfg.Replay = r.cfg.replay()
	}
	return nil
}

// close ends what open began, in the reverse order.
func (r *run) close() error {
	var err error
	if r.clients.Children != nil {
		r.clients.Children.Stop(time.Second)
	}
	if r.clockDir != "" {
		err = os.RemoveAll(r.clockDir)
	}
	if r.names != nil {
		err = errors.Join(err, r.names.Close())
		r.names = nil
	}
	if r.network != nil {
		err = errors.Join(err, r.network.Close())
		r.network = nil
	}
	if r.fleet != nil {
		err = errors.Join(err, r.fleet.Close())
		r.fleet = nil
	}
	return err
}
