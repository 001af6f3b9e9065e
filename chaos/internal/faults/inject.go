// Package faults carries out the steps of a plan. It counts the masters that each client can reach.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/clients"
	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// healPatience bounds one heal, whatever became of the run.
const healPatience = 30 * time.Second

// Injector carries out the steps of a plan.
type Injector struct {
	Plan     *plan.Plan
	Patience time.Duration // of the lock, with one master
	Fleet    *masters.Fleet
	Network  *network.Network
	Names    *network.Names // nil: clients dial addresses
	Recorder *history.Recorder
	Reach    *Reach
	Clients  *clients.Clients
	Log      io.Writer // nil: none
	Hide     func(text string) string

	mu    sync.Mutex
	on    map[string]int
	fired int

	// Observed has the observed effect of each fault, Unavailable the reason why a fault can't be done here. Failures
	// are faults that went wrong. Read them when Run has returned.
	Observed, Unavailable map[string]string
	Failures              []string
}

func (x *Injector) step(ctx context.Context, s plan.Step, start time.Time) {
	fault, err := x.Plan.FindFault(s.Fault)
	if err == nil {
		err = x.Can(fault)
	}
	if err != nil {
		x.note(func() { x.Unavailable[s.Fault] = err.Error() })
		return
	}
	harm := x.harm(fault, s)
	x.Reach.add(harm, 1)
	begun := x.Recorder.Now()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), healPatience)
	defer cancel()
	on, err := x.inject(bounded, fault, s)
	if err == nil {
		x.Recorder.Append(history.Event{
			At: begun, Type: history.FaultOn, Client: history.Everyone, Master: history.Everyone, Name: s.Fault,
			Note: s.String(),
		})
		x.switched(s, on.Observed)
		machine.SleepUntil(ctx, start.Add(time.Duration(s.At+s.For)))
		healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healPatience)
		defer cancel()
		err = on.Heal(healing)
		x.Recorder.Record(history.Event{
			Type: history.FaultOff, Client: history.Everyone, Master: history.Everyone, Name: s.Fault,
		})
		x.note(func() { x.on[s.Fault]-- })
	}
	if err != nil {
		x.note(func() { x.Failures = append(x.Failures, fmt.Sprintf("%s: %v", s, err)) })
	}
	x.Reach.add(harm, -1)
}

func (x *Injector) note(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

func (x *Injector) switched(s plan.Step, observed string) {
	x.note(func() {
		x.on[s.Fault]++
		x.fired++
		if x.Observed[s.Fault] == "" {
			x.Observed[s.Fault] = observed
		}
		if x.Log != nil {
			fmt.Fprintf(x.Log, "%8s  %s (%s)\n", time.Duration(x.Recorder.Now()).Round(time.Millisecond), s,
				x.Hide(observed))
		}
	})
}

// OnNow lists the faults that are on, and counts those that came on.
func (x *Injector) OnNow() (names []string, fired int) {
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

// Can returns why a fault is not available in this run.
func (x *Injector) Can(f plan.Fault) error {
	if f.Inject != nil {
		return canOwn(f, x.Fleet)
	}
	switch f.Where {
	case plan.OnMaster:
		return x.Fleet.Can(masters.Action(f.Name))
	case plan.OnNetwork:
		return x.Network.Can(f.Toxic(plan.Step{}))
	}
	if f.Children && x.Clients.Children.Count() == 0 {
		return fmt.Errorf("workload %s has no clients that are processes", x.Plan.Workload)
	}
	return nil
}

// harm returns the harm that a fault does to clients.
func (x *Injector) harm(f plan.Fault, s plan.Step) harm {
	clients, ms := x.Plan.Clients, x.Plan.Masters
	h := harm{links: f.Useless(s, clients, ms, x.Patience), masters: f.Hit(s, ms), leaves: f.Leaves}
	if f.Leaves == masters.FullService {
		return harm{}
	}
	if f.Where == plan.OnClient {
		hit := plan.OrAll(s.Clients, clients)
		if f.Children {
			hit = hit[:0:0]
			for c := range x.Clients.Children.Count() {
				hit = append(hit, c)
			}
		}
		h.links = network.IsolateClients(clients, ms, hit).Links()
	}
	return h
}

func (x *Injector) inject(ctx context.Context, f plan.Fault, s plan.Step) (masters.Injection, error) {
	clients, ms := x.Plan.Clients, x.Plan.Masters
	switch {
	case f.Inject != nil:
		return injectOwn(ctx, f, plan.Target{
			Step: s, Fleet: x.Fleet, Masters: plan.OrAll(s.Masters, ms), Clients: plan.OrAll(s.Clients, clients),
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

func (x *Injector) poison(ctx context.Context, links []network.Link, t network.Toxic) (masters.Injection, error) {
	remove, err := x.Network.Add(ctx, links, t)
	if err != nil {
		return masters.Injection{}, err
	}
	return masters.Injection{
		Observed: fmt.Sprintf("%s on %d paths", t, len(links)),
		Heal:     func(context.Context) error { return remove() },
	}, nil
}

// unname makes names unknown.
func (x *Injector) unname(ctx context.Context, links []network.Link) (masters.Injection, error) {
	told, show, err := x.Network.Unname(ctx, x.Names, links, healPatience/2)
	if err != nil {
		return masters.Injection{}, err
	}
	heal := func(context.Context) error { show(); return nil }
	return masters.Injection{
		Observed: fmt.Sprintf("%d names are unknown, which was answered %d times so far", len(links), told),
		Heal:     heal,
	}, nil
}

// flap cuts and mends paths every period until it is healed.
func (x *Injector) flap(ctx context.Context, f plan.Fault, s plan.Step) (masters.Injection, error) {
	links, cut := f.Cuts(s, x.Plan.Clients, x.Plan.Masters), f.Toxic(s)
	remove, err := x.Network.Add(ctx, links, cut)
	if err != nil {
		return masters.Injection{}, err
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
				remove, err = x.Network.Add(context.WithoutCancel(ctx), links, cut)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	heal := func(context.Context) error { close(stop); return <-ended }
	return masters.Injection{
		Observed: fmt.Sprintf("%d paths come and go every %v", len(links), time.Duration(s.Period)),
		Heal:     heal,
	}, nil
}

// hurtMasters does an action to several masters side by side.
func (x *Injector) hurtMasters(ctx context.Context, f plan.Fault, s plan.Step) (masters.Injection, error) {
	chosen := f.Hit(s, x.Plan.Masters)
	injections := make([]masters.Injection, len(chosen))
	errs := make([]error, len(chosen))
	params := s.Params()
	var group sync.WaitGroup
	for i, m := range chosen {
		group.Go(func() {
			injections[i], errs[i] = x.Fleet.Masters[m].Inject(ctx, masters.Action(s.Fault), params)
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
		return masters.Injection{}, errors.Join(err, heal(ctx))
	}
	return masters.Injection{Observed: fmt.Sprintf("master %d: %s", chosen[0], injections[0].Observed), Heal: heal}, nil
}

func (x *Injector) hurtClients(ctx context.Context, f plan.Fault, s plan.Step) (masters.Injection, error) {
	switch f.Name {
	case plan.Reconfigure:
		return x.Clients.Members.Reconfigure(ctx, x.Plan, s)
	case plan.ChildKill:
		return x.Clients.Children.Kill()
	case plan.ChildPause:
		return x.Clients.Children.Pause()
	case plan.ClientClock, plan.ClientRate:
		return x.Clients.SetClocks(s)
	}
	return x.Clients.Suspend(plan.OrAll(s.Clients, x.Plan.Clients))
}
