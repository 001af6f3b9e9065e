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
	ttl      time.Duration
	fleet    *masters.Fleet
	network  *network.Network
	recorder *history.Recorder
	reach    *reach
	gates    []*workload.Gate
	children *children
	log      io.Writer

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

// run does all steps and returns when the last fault has been healed. When ctx is done it heals at once.
func (x *injector) run(ctx context.Context, start time.Time) {
	var group sync.WaitGroup
	for _, s := range x.plan.Steps {
		group.Go(func() {
			if sleepUntil(ctx, start.Add(time.Duration(s.At))) {
				x.step(ctx, s, start)
			}
		})
	}
	group.Wait()
}

func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (x *injector) step(ctx context.Context, s plan.Step, start time.Time) {
	fault, err := plan.FindFault(s.Fault)
	if err == nil {
		err = x.can(fault)
	}
	if err != nil {
		x.note(func() { x.unavailable[s.Fault] = err.Error() })
		return
	}
	links, down := x.affected(fault, s)
	x.reach.paths(links, 1)
	x.shift(down, 1)
	begun := x.recorder.Now()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), healPatience)
	defer cancel()
	on, err := x.inject(bounded, fault, s)
	if err == nil {
		x.recorder.Append(history.Event{
			At: begun, Type: history.FaultOn, Client: history.Everyone, Master: history.Everyone, Name: s.Fault, Note: s.String(),
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
	x.shift(down, -1)
	x.reach.paths(links, -1)
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
			fmt.Fprintf(x.log, "%8s  %s (%s)\n", time.Duration(x.recorder.Now()).Round(time.Millisecond), s, observed)
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
	if f.Where == plan.OnMaster {
		return x.fleet.Can(masters.Action(f.Name))
	}
	if f.Name == "child-kill" || f.Name == "child-pause" {
		if x.children.count() == 0 {
			return fmt.Errorf("workload %s has no clients that are processes", x.plan.Workload)
		}
	}
	return nil
}

func (x *injector) shift(ms []int, by int) {
	for _, m := range ms {
		x.reach.master(m, by)
	}
}

// affected says which paths and masters a fault makes useless, or so slow that nothing can be promised of them.
func (x *injector) affected(f plan.Fault, s plan.Step) (links []network.Link, down []int) {
	switch f.Where {
	case plan.OnMaster:
		switch f.Name {
		case "flushall", "script-flush", "clock-step", "clock-rate", "client-kill":
			return nil, nil
		}
		return nil, orAll(s.Masters, x.plan.Masters)
	case plan.OnPartition:
		return x.matrix(f.Name, s).Links(), nil
	case plan.OnNetwork:
		// A request takes two delays, and has a twentieth of the ttl.
		slow := 2*time.Duration(s.Delay+s.Jitter) > x.ttl/40
		if f.Name == "slow-close" || f.Name == "latency" && !slow {
			return nil, nil
		}
		return x.links(s), nil
	case plan.OnClient:
		if f.Name == "client-pause" {
			return network.IsolateClients(x.plan.Clients, x.plan.Masters, orAll(s.Clients, x.plan.Clients)).Links(), nil
		}
		return network.IsolateClients(x.plan.Clients, x.plan.Masters, x.children.clients()).Links(), nil
	}
	return nil, nil
}

// links are the paths that a step names.
func (x *injector) links(s plan.Step) []network.Link {
	var out []network.Link
	for _, c := range orAll(s.Clients, x.plan.Clients) {
		for _, m := range orAll(s.Masters, x.plan.Masters) {
			out = append(out, network.Link{Client: c, Master: m})
		}
	}
	return out
}

func orAll(chosen []int, n int) []int {
	if len(chosen) > 0 {
		return chosen
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (x *injector) matrix(name string, s plan.Step) network.Matrix {
	clients, ms := x.plan.Clients, x.plan.Masters
	switch name {
	case "isolate-client":
		return network.IsolateClients(clients, ms, orAll(s.Clients, 1))
	case "isolate-master":
		return network.IsolateMasters(clients, ms, orAll(s.Masters, 1))
	case "minority-lost":
		return network.MinorityLost(clients, ms)
	case "majority-lost":
		return network.MajorityLost(clients, ms)
	case "different-majorities":
		return network.DifferentMajorities(clients, ms)
	case "bridge":
		return network.Bridge(clients, ms)
	case "ring":
		return network.Ring(clients, ms)
	default: // flapping
		return network.IsolateMasters(clients, ms, orAll(s.Masters, 1))
	}
}

func direction(s plan.Step) network.Direction {
	switch s.Direction {
	case "requests":
		return network.Requests
	case "replies":
		return network.Replies
	default:
		return network.Both
	}
}

func (x *injector) inject(ctx context.Context, f plan.Fault, s plan.Step) (effect, error) {
	switch f.Where {
	case plan.OnMaster:
		return x.hurtMasters(ctx, s)
	case plan.OnNetwork:
		return x.poison(ctx, x.links(s), toxic(s))
	case plan.OnPartition:
		if f.Name == "flapping" {
			return x.flap(ctx, s)
		}
		return x.poison(ctx, x.matrix(f.Name, s).Links(), network.Silence(direction(s)))
	default:
		return x.hurtClients(f, s)
	}
}

func toxic(s plan.Step) network.Toxic {
	dir, delay := direction(s), time.Duration(s.Delay)
	switch s.Fault {
	case "latency":
		return network.Latency(dir, delay, time.Duration(s.Jitter))
	case "bandwidth":
		return network.Bandwidth(dir, int64(s.Rate))
	case "slow-close":
		return network.SlowClose(delay)
	case "timeout":
		return network.Timeout(dir, delay)
	case "reset":
		return network.ResetPeer(dir, 0)
	case "slicer":
		return network.Slicer(dir, s.Bytes, delay)
	case "limit-data":
		return network.LimitData(dir, s.Bytes)
	case "down":
		return network.Down()
	default:
		return network.Silence(dir)
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

// flap cuts and mends paths every period until it is healed.
func (x *injector) flap(ctx context.Context, s plan.Step) (effect, error) {
	links := x.matrix(s.Fault, s).Links()
	cut := network.Silence(direction(s))
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
	return effect{observed: fmt.Sprintf("%d paths come and go every %v", len(links), time.Duration(s.Period)), heal: heal}, nil
}

// hurtMasters does an action to several masters side by side.
func (x *injector) hurtMasters(ctx context.Context, s plan.Step) (effect, error) {
	chosen := orAll(s.Masters, x.plan.Masters)
	injections := make([]masters.Injection, len(chosen))
	errs := make([]error, len(chosen))
	params := masters.Params{For: time.Duration(s.For) + time.Second, Step: time.Duration(s.Step), Rate: s.Rate}
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

func (x *injector) hurtClients(f plan.Fault, s plan.Step) (effect, error) {
	switch f.Name {
	case "child-kill":
		return x.children.kill()
	case "child-pause":
		return x.children.pause()
	}
	chosen := orAll(s.Clients, x.plan.Clients)
	for _, c := range chosen {
		x.gates[c].Shut()
	}
	heal := func(context.Context) error {
		for _, c := range chosen {
			x.gates[c].Open()
		}
		return nil
	}
	return effect{observed: fmt.Sprintf("clients %v stand still between two steps", chosen), heal: heal}, nil
}
