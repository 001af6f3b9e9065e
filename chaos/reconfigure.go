package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// This file is about which masters the clients of a run have: those that they begin with, and those that steps of
// plan.Reconfigure give them.

func (r *run) newMembers(ctx context.Context) *members {
	return &members{
		open: r.openClient, use: r.reach.use, labelled: r.labelled, failed: r.unexpectedError, ordered: r.plan.Inside,
		changed: make(chan struct{}), cut: ctx.Done(), free: make(map[int]time.Time), setsOf: make(map[string][][]int),
	}
}

// openFirst opens a client with the masters that it begins with.
func (r *run) openFirst(ctx context.Context, client int) (locker workload.Locker, err error) {
	sets := r.plan.FirstSets()
	if r.members != nil {
		return r.members.begin(ctx, client, sets)
	}
	r.reach.use(client, sets)
	r.labelled(ctx, func(ctx context.Context) { locker, err = r.openClient(ctx, client, configuration{1, sets}) })
	return locker, err
}

// setsOf are the masters of a hold.
func (r *run) setsOf(owner string) [][]int {
	if r.members != nil {
		return r.members.hadBy(owner)
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

// reconfigure gives clients other masters at the same time.
func (x *injector) reconfigure(ctx context.Context, s plan.Step) (effect, error) {
	chosen := plan.OrAll(s.Clients, x.plan.Clients)
	errs := make([]error, len(chosen))
	var group sync.WaitGroup
	for i, c := range chosen {
		to := configuration{x.plan.Generation(s, c), s.Sets}
		group.Go(func() { errs[i] = x.members.change(ctx, c, to, x.plan.Since(s, c)) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return effect{}, err
	}
	return effect{
		observed: fmt.Sprintf("clients %v have a new client of the lock", chosen),
		heal:     func(context.Context) error { return nil },
	}, nil
}
