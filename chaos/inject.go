package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// healPatience bounds one heal, whatever became of the run.
const healPatience = 30 * time.Second

// injector carries out the steps of a plan.
type injector struct {
	plan     *plan.Plan
	patience time.Duration // of the lock, with one master
	fleet    *masters.Fleet
	network  *network.Network
	names    *network.Names // nil: clients dial addresses
	recorder *history.Recorder
	reach    *reach
	members  *members
	gates    []*workload.Gate
	lockers  []workload.Locker    // by client; nil for clients that are processes of the harness
	clocks   []workload.WallClock // by client
	children *children
	log      io.Writer
	hide     func(text string) string

	mu          sync.Mutex
	on          map[string]int
	fired       int
	observed    map[string]string
	unavailable map[string]string
	failures    []string
}

// effect is a fault that is on.
type effect struct {
	observed string
	heal     func(context.Context) error
}

func (x *injector) step(ctx context.Context, s plan.Step, start time.Time) {
	fault, err := x.plan.FindFault(s.Fault)
	if err == nil {
		err = x.can(fault)
	}
	if err != nil {
		x.note(func() { x.unavailable[s.Fault] = err.Error() })
		return
	}
	harm := x.harm(fault, s)
	x.reach.add(harm, 1)
	begun := x.recorder.Now()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), healPatience)
	defer cancel()
	on, err := x.inject(bounded, fault, s)
	if err == nil {
		x.recorder.Append(history.Event{
			At: begun, Type: history.FaultOn, Client: history.Everyone, Master: history.Everyone, Name: s.Fault,
			Note: s.String(),
		})
		x.switched(s, on.observed)
		sleepUntil(ctx, start.Add(time.Duration(s.At+s.For)))
		healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healPatience)
		defer cancel()
		err = on.heal(healing)
		x.recorder.Record(history.Event{
			Type: history.FaultOff, Client: history.Everyone, Master: history.Everyone, Name: s.Fault,
		})
		x.note(func() { x.on[s.Fault]-- })
	}
	if err != nil {
		x.note(func() { x.failures = append(x.failures, fmt.Sprintf("%s: %v", s, err)) })
	}
	x.reach.add(harm, -1)
}

func (x *injector) note(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

func (x *injector) switched(s plan.Step, observed string) {
	x.note(func() {
		x.on[s.Fault]++
		x.fired++
		if x.observed[s.Fault] == "" {
			x.observed[s.Fault] = observed
		}
		if x.log != nil {
			fmt.Fprintf(x.log, "%8s  %s (%s)\n", time.Duration(x.recorder.Now()).Round(time.Millisecond), s,
				x.hide(observed))
		}
	})
}

// onNow lists the faults that are on.
func (x *injector) onNow() (names []string, fired int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, n := range x.on {
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, x.fired
}

// can returns why a fault is not available in this run.
func (x *injector) can(f plan.Fault) error {
	if f.Inject != nil {
		return canOwn(f, x.fleet)
	}
	switch f.Where {
	case plan.OnMaster:
		return x.fleet.Can(masters.Action(f.Name))
	case plan.OnNetwork:
		return x.network.Can(f.Toxic(plan.Step{}))
	}
	if f.Children && x.children.count() == 0 {
		return fmt.Errorf("workload %s has no clients that are processes", x.plan.Workload)
	}
	return nil
}

// harm returns the harm that a fault does to clients.
func (x *injector) harm(f plan.Fault, s plan.Step) harm {
	clients, ms := x.plan.Clients, x.plan.Masters
	h := harm{links: f.Useless(s, clients, ms, x.patience), masters: f.Hit(s, ms), leaves: f.Leaves}
	if f.Leaves == masters.FullService {
		return harm{}
	}
	if f.Where == plan.OnClient {
		hit := plan.OrAll(s.Clients, clients)
		if f.Children {
			hit = x.children.clients()
		}
		h.links = network.IsolateClients(clients, ms, hit).Links()
	}
	return h
}

func (x *injector) inject(ctx context.Context, f plan.Fault, s plan.Step) (effect, error) {
	clients, ms := x.plan.Clients, x.plan.Masters
	switch {
	case f.Inject != nil:
		return injectOwn(ctx, f,
			plan.Target{
				Step: s, Fleet: x.fleet, Masters: plan.OrAll(s.Masters, ms), Clients: plan.OrAll(s.Clients, clients),
			})
	case f.Where == plan.OnMaster:
		return x.hurtMasters(ctx, f, s)
	case f.Name == plan.NoName:
		return x.unname(ctx, s.Links(clients, ms))
	case f.Where == plan.OnNetwork:
		return x.poison(ctx, s.Links(clients, ms), f.Toxic(s))
	case f.Name == plan.Flapping:
		return x.flap(ctx, f, s)
	case f.Where == plan.OnPartition:
		return x.poison(ctx, f.Cuts(s, clients, ms), f.Toxic(s))
	default:
		return x.hurtClients(ctx, f, s)
	}
}

func (x *injector) poison(ctx context.Context, links []network.Link, t network.Toxic) (effect, error) {
	remove, err := x.network.Add(ctx, links, t)
	if err != nil {
		return effect{}, err
	}
	return effect{
		observed: fmt.Sprintf("%s on %d paths", t, len(links)),
		heal:     func(context.Context) error { return remove() },
	}, nil
}

// unname makes names unknown.
func (x *injector) unname(ctx context.Context, links []network.Link) (effect, error) {
	told, show, err := x.network.Unname(ctx, x.names, links, healPatience/2)
	if err != nil {
		return effect{}, err
	}
	heal := func(context.Context) error { show(); return nil }
	return effect{
		observed: fmt.Sprintf("%d names are unknown, which was answered %d times so far", len(links), told),
		heal:     heal,
	}, nil
}

// flap cuts and mends paths every period until it is healed.
func (x *injector) flap(ctx context.Context, f plan.Fault, s plan.Step) (effect, error) {
	links, cut := f.Cuts(s, x.plan.Clients, x.plan.Masters), f.Toxic(s)
	remove, err := x.network.Add(ctx, links, cut)
	if err != nil {
		return effect{}, err
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Duration(s.Period))
		defer tick.Stop()
		for isCut := true; ; isCut = !isCut {
			var err error
			select {
			case <-stop:
				ended <- remove()
				return
			case <-tick.C:
			}
			if isCut {
				err = remove()
			} else {
				remove, err = x.network.Add(context.WithoutCancel(ctx), links, cut)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	heal := func(context.Context) error { close(stop); return <-ended }
	return effect{
		observed: fmt.Sprintf("%d paths come and go every %v", len(links), time.Duration(s.Period)),
		heal:     heal,
	}, nil
}

// hurtMasters does an action to several masters side by side.
func (x *injector) hurtMasters(ctx context.Context, f plan.Fault, s plan.Step) (effect, error) {
	chosen := f.Hit(s, x.plan.Masters)
	injections := make([]masters.Injection, len(chosen))
	errs := make([]error, len(chosen))
	params := s.Params()
	var group sync.WaitGroup
	for i, m := range chosen {
		group.Go(func() {
			injections[i], errs[i] = x.fleet.Masters[m].Inject(ctx, masters.Action(s.Fault), params)
			if errs[i] != nil {
				errs[i] = fmt.Errorf("master %d: %w", m, errs[i])
			}
		})
	}
	group.Wait()
	heal := func(ctx context.Context) error {
		healed := make([]error, len(chosen))
		var group sync.WaitGroup
		for i := range chosen {
			if injections[i].Heal != nil {
				group.Go(func() { healed[i] = injections[i].Heal(ctx) })
			}
		}
		group.Wait()
		return errors.Join(healed...)
	}
	if err := errors.Join(errs...); err != nil {
		return effect{}, errors.Join(err, heal(ctx))
	}
	return effect{observed: fmt.Sprintf("master %d: %s", chosen[0], injections[0].Observed), heal: heal}, nil
}

func (x *injector) hurtClients(ctx context.Context, f plan.Fault, s plan.Step) (effect, error) {
	switch f.Name {
	case plan.Reconfigure:
		return x.reconfigure(ctx, s)
	case plan.ChildKill:
		return x.children.kill()
	case plan.ChildPause:
		return x.children.pause()
	case plan.ClientClock, plan.ClientRate:
		return x.setClocks(s)
	}
	return x.suspend(plan.OrAll(s.Clients, x.plan.Clients))
}
