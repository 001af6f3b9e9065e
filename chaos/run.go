package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
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
	active.Add(1)
	defer active.Add(-1)
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	r := &run{cfg: cfg, plan: cfg.Plan, started: time.Now(), label: strconv.FormatUint(runs.Add(1), 10)}
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
		return nil, r.hidden(errors.Join(fmt.Errorf("%w: %w", ErrSetup, err), r.close()))
	}
	r.keysBefore = r.lookAtKeys(ctx)
	r.machine = machine.Watch(r.recorder, r.profile.TTL, r.processes, r.fleet.Proxy)
	r.drive(ctx)
	r.makeRounds(ctx)
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
	label   string                   // of the goroutines that call the subject
	hide    func(text string) string // puts xxxxx for the masters' passwords; nil: there are none

	fleet    *masters.Fleet
	network  *network.Network
	names    *network.Names // where the plan wants clients to dial names
	recorder *history.Recorder
	lockers  []workload.Locker    // by client; nil for children
	clocks   []workload.WallClock // by client
	clockDir string               // of what clients need that are processes; empty: nothing
	members  *members             // nil: clients have the same masters all the time
	reach    *reach
	children *children
	// checked and unchecked are what holders read and write, if the profile has them do so.
	checked, unchecked *workload.Register
	injector           *injector
	watch              *watch
	votes              *votes
	gates              []*workload.Gate
	lasted             time.Duration

	machine *machine.Machine
	rounds  *rounds // nil: the profile has none
	grown   int     // goroutines of the subject when all holds had been released
	left    int     // goroutines of the subject when its clients were closed
	leftAt  string  // where the first of them is

	keysBefore, keysAfter []map[string]time.Duration // by master: those that live for long

	mu         sync.Mutex
	unexpected int
	errors     []string
	notes      []string
	stuck      []string
}

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
	r.children = &children{
		recorder: r.recorder, rand: rand.New(rand.NewPCG(r.plan.Seed, 3)),
		options: func(client, nth int) workload.ChildOptions {
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

func (r *run) openClients(ctx context.Context) error {
	processes := min(r.profile.Children, r.plan.Clients-1)
	r.clocks = make([]workload.WallClock, r.plan.Clients)
	r.reach = newReach(r.recorder, r.plan.Clients, r.plan.Masters)
	if r.plan.Reconfigures() {
		r.members = r.newMembers(ctx)
	}
	for c := range r.plan.Clients {
		r.gates = append(r.gates, &workload.Gate{})
		if c < processes {
			r.reach.use(c, r.plan.FirstSets())
			r.lockers = append(r.lockers, nil)
			continue
		}
		locker, err := r.openFirst(ctx, c)
		if err != nil {
			return fmt.Errorf("client %d: %w", c, err)
		}
		r.lockers = append(r.lockers, locker)
		if limited, ok := locker.(workload.Limited); ok {
			if err := limited.Lacks(r.profile); err != nil {
				return err
			}
		}
	}
	r.injector = &injector{
		plan: r.plan, patience: workload.PatienceOf(r.cfg.Subject, r.profile.TTL), fleet: r.fleet, network: r.network,
		names: r.names, recorder: r.recorder,
		reach: r.reach, members: r.members, gates: r.gates, lockers: r.lockers, clocks: r.clocks,
		children: r.children, log: r.cfg.Log, hide: r.hide,
		on: make(map[string]int), observed: make(map[string]string), unavailable: make(map[string]string),
	}
	r.watch = r.newWatch()
	return r.children.start(processes)
}

// drive lets the workload run while the plan is carried out.
func (r *run) drive(ctx context.Context) {
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var workers, around sync.WaitGroup
	r.labelled(working, func(working context.Context) { r.startWorkers(working, &workers) })
	around.Go(func() { r.watch.run(working) })
	around.Go(func() { r.progress(working) })

	start := time.Now()
	r.injector.run(working, start)
	sleepUntil(working, start.Add(time.Duration(r.plan.Duration)))
	r.recorder.Record(history.Event{Type: history.Healed, Client: history.Everyone, Master: history.Everyone})
	sleepUntil(working, time.Now().Add(r.limits().Tail))
	stopWork()
	r.lasted = time.Since(start)
	for _, g := range r.gates {
		g.Open()
	}
	if !waitFor(&workers, endPatience) {
		r.stuck = append(r.stuck, fmt.Sprintf("workers have not ended %v after they were told to", endPatience))
	}
	r.children.stop(endPatience / 2)
	around.Wait()
}

// processes returns the processes of this run: its masters, if they are processes of this machine,
// and its clients.
func (r *run) processes() []machine.Process {
	out := r.children.processes()
	for i, pid := range r.fleet.Pids() {
		out = append(out, machine.Process{Name: fmt.Sprintf("master %d", i), Pid: pid, Main: true})
	}
	return out
}

func (r *run) startWorkers(ctx context.Context, group *sync.WaitGroup) {
	fenced := r.cfg.Subject.Supports(history.Fenced) == nil
	perClient := cmp.Or(r.profile.Workers, 2)
	for c, locker := range r.lockers {
		if locker == nil {
			continue
		}
		for i := range perClient {
			w := workload.Worker{
				Client: c, Number: i, Locker: locker, Sink: r.recorder, Profile: r.profile.Of(i), Gate: r.gates[c],
				Fenced: fenced,
				Rand:   rand.New(rand.NewPCG(r.plan.Seed, uint64(c*perClient+i)+100)), Checked: r.checked,
				Unchecked:  r.unchecked,
				Unexpected: r.unexpectedError,
			}
			group.Go(func() { w.Run(ctx) })
		}
		for i, p := range r.neighbours(c) {
			w := workload.Worker{
				Client: c, Number: perClient + i, Locker: locker, Sink: r.recorder, Profile: p, Gate: r.gates[c],
				Rand: rand.New(rand.NewPCG(r.plan.Seed, uint64(c*perClient+i)+10_000)), Unexpected: r.unexpectedError,
			}
			group.Go(func() { w.Run(ctx) })
		}
	}
}

func waitFor(group *sync.WaitGroup, within time.Duration) bool {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
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
		p.On, p.Faults = r.injector.onNow()
		r.cfg.Progress(p)
	}
}

// close ends what open began, in the reverse order.
func (r *run) close() error {
	var err error
	if r.children != nil {
		r.children.stop(time.Second)
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
