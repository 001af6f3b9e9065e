package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/clients"
	"github.com/seed-624411e5/redlock/chaos/internal/faults"
	"github.com/seed-624411e5/redlock/chaos/internal/leftovers"
	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// ErrSetup is matched by errors of Run for a run that could not be made: no servers, a library that
// lacks a feature that the workload needs, an unknown scenario.
var ErrSetup = errors.New("chaos: can't set the run up")

// endPatience is how long workers and clients may take to release their locks and end.
const endPatience = 30 * time.Second

// Run makes one run and judges it. It returns when everything that it started has ended. If ctx
// ends first, the run is cut short: Run judges the record up to then, and the report says so.
//
// The report's files are written in any case once the run has begun. The error matches ErrSetup if it could not begin;
// any other error is about writing the files.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	r := &run{cfg: cfg, plan: cfg.Plan, started: time.Now(), leftovers: leftovers.Begin()}
	defer r.leftovers.End()
	if r.profile, err = cfg.Plan.Profile(); err == nil {
		err = r.profile.Check(cfg.Subject)
	}
	if err == nil && cfg.Plan.Reconfigures() {
		err = workload.CheckMembers(cfg.Subject)
	}
	if err == nil && r.setsClocks() {
		err = workload.CheckClock(cfg.Subject)
	}
	if err == nil {
		err = r.giveClocks(ctx)
	}
	if err == nil {
		err = r.open(ctx)
	}
	if err != nil {
		r.closeClients(ctx)
		return nil, r.hidden(errors.Join(fmt.Errorf("%w: %w", ErrSetup, err), r.close()))
	}
	r.leftovers.Fleet, r.leftovers.Settle = r.fleet, r.limits().Goroutines
	r.leftovers.LookBefore(ctx)
	r.machine = machine.Watch(r.recorder, r.profile.TTL, r.processes, r.fleet.Proxy)
	r.leftovers.Machine = r.machine
	r.drive(ctx)
	if r.profile.Rounds && ctx.Err() == nil {
		r.votes.over.Store(true)
		if !r.leftovers.Rounds(ctx, r.cfg.Subject, r.clients.Lockers) {
			r.stuck = append(r.stuck, "clients do not end a round")
		}
	}
	r.quiesce(ctx)
	r.machine.Stop()
	rep := r.judge()
	if err := r.close(); err != nil {
		rep.Notes = append(rep.Notes, "ending the run: "+err.Error())
	}
	if ctx.Err() != nil {
		cut := "the run was cut short: " + context.Cause(ctx).Error()
		if rep.Verdict == report.Violation {
			rep.Reasons = append(rep.Reasons, cut)
		} else {
			rep.Verdict, rep.Reasons = report.Unknown, append([]string{cut}, rep.Reasons...)
		}
	}
	r.hideIn(rep)
	return rep, report.Write(rep, cfg.HTML, cfg.JSON, cfg.JUnit, cfg.Dir)
}

// run is one run while it lasts.
type run struct {
	cfg     Config
	plan    *plan.Plan
	profile workload.Profile
	started time.Time
	hide    func(text string) string // puts xxxxx for the masters' passwords; nil: there are none

	fleet    *masters.Fleet
	network  *network.Network
	names    *network.Names // where the plan wants clients to dial names
	recorder *history.Recorder
	clients  clients.Clients
	clockDir string // of what clients need that are processes; empty: nothing
	reach    *faults.Reach
	// checked and unchecked are what holders read and write, if the profile has them do so.
	checked, unchecked *workload.Register
	injector           *faults.Injector
	watch              *watch
	votes              *votes
	lasted             time.Duration

	machine   *machine.Machine
	leftovers *leftovers.Search

	mu         sync.Mutex
	unexpected int
	errors     []string
	notes      []string
	stuck      []string
	unseen     []string // what could not be looked at in the end
}

// drive lets the workload run while the plan is carried out.
func (r *run) drive(ctx context.Context) {
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var workers, around sync.WaitGroup
	r.leftovers.Labelled(working, func(working context.Context) { r.startWorkers(working, &workers) })
	around.Go(func() { r.watch.run(working) })
	around.Go(func() { r.progress(working) })

	start := time.Now()
	r.injector.Run(working, start)
	machine.SleepUntil(working, start.Add(time.Duration(r.plan.Duration)))
	r.recorder.Record(history.Event{Type: history.Healed, Client: history.Everyone, Master: history.Everyone})
	machine.SleepUntil(working, time.Now().Add(r.limits().Tail))
	stopWork()
	r.lasted = time.Since(start)
	for _, g := range r.clients.Gates {
		g.Open()
	}
	if !machine.WaitFor(&workers, endPatience) {
		r.stuck = append(r.stuck, fmt.Sprintf("workers have not ended %v after they were told to", endPatience))
	}
	r.clients.Children.Stop(endPatience / 2)
	around.Wait()
}

// processes returns the processes of this run: its masters, if they are processes of this machine, and its clients.
func (r *run) processes() []machine.Process {
	out := r.clients.Children.Processes()
	for i, pid := range r.fleet.Pids() {
		out = append(out, machine.Process{Name: fmt.Sprintf("master %d", i), Pid: pid, Main: true})
	}
	return out
}

func (r *run) startWorkers(ctx context.Context, group *sync.WaitGroup) {
	fenced := r.cfg.Subject.Supports(history.Fenced) == nil
	perClient := cmp.Or(r.profile.Workers, 2)
	for c, locker := range r.clients.Lockers {
		if locker == nil {
			continue
		}
		for i := range perClient {
			w := workload.Worker{
				Client: c, Number: i, Locker: locker, Sink: r.recorder, Profile: r.profile.Of(i),
				Gate:   r.clients.Gates[c],
				Fenced: fenced, Rand: rand.New(rand.NewPCG(r.plan.Seed, uint64(c*perClient+i)+100)), Checked: r.checked,
				Unchecked:  r.unchecked,
				Unexpected: r.unexpectedError,
			}
			group.Go(func() { w.Run(ctx) })
		}
		for i, p := range r.neighbours(c) {
			w := workload.Worker{
				Client: c, Number: perClient + i, Locker: locker, Sink: r.recorder, Profile: p,
				Gate: r.clients.Gates[c],
				Rand: rand.New(rand.NewPCG(r.plan.Seed, uint64(c*perClient+i)+10_000)), Unexpected: r.unexpectedError,
			}
			group.Go(func() { w.Run(ctx) })
		}
	}
}

func (r *run) unexpectedError(op string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unexpected++
	if len(r.errors) < 20 {
		r.errors = append(r.errors, op+": "+err.Error())
	}
}

func (r *run) limits() Limits { return r.cfg.Limits.WithDefaults(r.profile.TTL) }

// progress tells how far the run is, four times a second.
func (r *run) progress(ctx context.Context) {
	if r.cfg.Progress == nil {
		return
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	seen, p := 0, Progress{Total: time.Duration(r.plan.Duration) + r.limits().Tail}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		events := r.recorder.Events()
		for ; seen < len(events); seen++ {
			switch e := &events[seen]; e.Type {
			case history.AcquireReturn:
				p.Operations++
				if e.Outcome == history.Acquired {
					p.Acquired++
				}
			case history.ReleaseReturn, history.ExtendReturn:
				p.Operations++
			}
		}
		p.Elapsed = time.Duration(r.recorder.Now())
		p.On, p.Faults = r.injector.OnNow()
		r.cfg.Progress(p)
	}
}
