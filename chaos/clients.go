package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/internal/clients"
	"github.com/seed-624411e5/redlock/chaos/internal/faults"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// openClients opens the clients that are goroutines, and then starts those that are processes.
func (r *run) openClients(ctx context.Context) error {
	processes := min(r.profile.Children, r.plan.Clients-1)
	r.clients.Clocks = make([]workload.WallClock, r.plan.Clients)
	r.reach = faults.NewReach(r.recorder, r.plan.Clients, r.plan.Masters)
	if r.plan.Reconfigures() {
		r.clients.Members = r.newMembers(ctx)
	}
	for c := range r.plan.Clients {
		r.clients.Gates = append(r.clients.Gates, &workload.Gate{})
		if c < processes {
			r.reach.Use(c, r.plan.FirstSets())
			r.clients.Lockers = append(r.clients.Lockers, nil)
			continue
		}
		locker, err := r.openFirst(ctx, c)
		if err != nil {
			return fmt.Errorf("client %d: %w", c, err)
		}
		r.clients.Lockers = append(r.clients.Lockers, locker)
		if limited, ok := locker.(workload.Limited); ok {
			if err := limited.Lacks(r.profile); err != nil {
				return err
			}
		}
	}
	r.injector = &faults.Injector{
		Plan: r.plan, Patience: workload.PatienceOf(r.cfg.Subject, r.profile.TTL), Fleet: r.fleet, Network: r.network,
		Names: r.names, Recorder: r.recorder, Reach: r.reach, Clients: &r.clients, Log: r.cfg.Log, Hide: r.hide,
	}
	r.watch = r.newWatch()
	return r.clients.Children.Start(processes)
}

func (r *run) newMembers(ctx context.Context) *clients.Members {
	return &clients.Members{
		Open: r.openClient, Use: r.reach.Use, Labelled: r.leftovers.Labelled, Failed: r.unexpectedError,
		Ordered: r.plan.Inside, Cut: ctx.Done(),
	}
}

// openFirst opens a client with the masters that it begins with.
func (r *run) openFirst(ctx context.Context, client int) (locker workload.Locker, err error) {
	sets := r.plan.FirstSets()
	if r.clients.Members != nil {
		return r.clients.Members.Begin(ctx, client, sets)
	}
	r.reach.Use(client, sets)
	r.leftovers.Labelled(ctx, func(ctx context.Context) {
		locker, err = r.openClient(ctx, client, clients.Configuration{Generation: 1, Sets: sets})
	})
	return locker, err
}

// setsOf are the masters of a hold.
func (r *run) setsOf(owner string) [][]int {
	if r.clients.Members != nil {
		return r.clients.Members.HadBy(owner)
	}
	return r.plan.FirstSets()
}

// begins are how a client reaches the masters that it begins with.
func (r *run) begins(client int) []endpoint.Endpoint {
	var out []endpoint.Endpoint
	all := r.reaches(client)
	for _, m := range r.plan.FirstSets()[0] {
		out = append(out, all[m])
	}
	return out
}

// openClient opens a client that tells its masters' votes, if the subject can do that.
func (r *run) openClient(ctx context.Context, client int, c clients.Configuration) (workload.Locker, error) {
	all, numbers := r.reaches(client), slices.Concat(c.Sets...)
	masters := make([][]endpoint.Endpoint, len(c.Sets))
	for i, set := range c.Sets {
		for _, m := range set {
			masters[i] = append(masters[i], all[m])
		}
	}
	tell := func(b workload.Ballot) {
		b.Master = numbers[b.Master]
		r.votes.add(client, b)
	}
	subject := r.clocked(client)
	if s, ok := subject.(workload.Members); ok && r.plan.Reconfigures() {
		return s.OpenMembers(ctx, workload.Membership{Sets: masters, Generation: uint64(c.Generation)}, tell)
	}
	if teller, ok := subject.(workload.VoteTeller); ok {
		return teller.OpenTelling(ctx, masters[0], tell)
	}
	return workload.Open(ctx, subject, masters[0])
}

// clockOf is the first clock setting of a client's process; nil: the plan sets no clocks.
func (r *run) clockOf(client int) *workload.ClockSetting {
	if !r.setsClocks() {
		return nil
	}
	setting := r.clients.Clocks[client].Setting()
	return &setting
}

// giveClocks prepares a subject whose clients are processes, if the plan sets clocks.
func (r *run) giveClocks(ctx context.Context) (err error) {
	s, ok := r.cfg.Subject.(workload.Settable)
	if !ok || !r.setsClocks() {
		return nil
	}
	if r.clockDir, err = os.MkdirTemp(r.cfg.Options.TempDir, "redlock-clocks-"); err == nil {
		r.cfg.Subject, err = s.WithClocks(ctx, r.clockDir)
	}
	return err
}

// clocked returns the subject with this client's clock, if the plan sets clocks.
func (r *run) clocked(client int) workload.Subject {
	s, ok := r.cfg.Subject.(workload.Clocked)
	if !ok || !r.setsClocks() {
		return r.cfg.Subject
	}
	return s.WithClock(r.clients.Clocks[client].Now)
}

func (r *run) setsClocks() bool {
	names := r.plan.FaultNames()
	return slices.Contains(names, plan.ClientClock) || slices.Contains(names, plan.ClientRate)
}
