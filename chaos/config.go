// Package chaos tests whether a lock holds. It runs a workload on real masters, breaks network,
// servers, clocks and clients by a plan, and records all observations. Oracles then judge the
// record. They look for overlapping holds, tokens out of order, lost updates of a protected
// register, orphans, leaked goroutines, low availability and slow recovery. They also check that
// each planned fault really happened.
//
//	report, err := chaos.Run(ctx, chaos.Config{Backend: "process", Scenario: "partitions", Seed: 7})
//
// An error means that the run could not be made. The findings of a run are in the report, with the
// verdict pass, violation or unknown. The package can report "this lock is broken" about any
// library: see [workload.Subject]. In tests use package chaostest.
package chaos

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Report has the findings of a run.
type Report = report.Report

// Config says what to run. The zero value runs this library in the scenario "broken-network" on embedded masters.
type Config struct {
	// Subject is the library under test. Default: this one, see [Redlock].
	Subject workload.Subject
	// Backend names where masters come from. Default: "embedded".
	Backend string
	// Backends has them by name. Default: masters.Standard().
	Backends masters.Registry
	// Options for the backend; N and AOF are set from the plan.
	Options masters.Options

	// Plan is what to do. Default: drawn from Scenario, Seed, Duration, Masters and Clients.
	Plan *plan.Plan
	// Scenario is a name of plan.Scenarios. Default: "broken-network".
	Scenario string
	// Seed is the seed of the plan and of the workload. Default: 1.
	Seed uint64
	// Duration is how long the workload runs before the last check. Default: 20 s.
	Duration time.Duration
	// Masters and Clients are how many there are. Default: 5 each.
	Masters, Clients int
	// TTL replaces the workload's ttl. A lock that gives each request a share of the ttl needs a
	// long ttl on a slow or busy machine. At a ttl of 2 s this library waits 100 ms for a master.
	// Default: the plan's.
	TTL time.Duration

	// Neighbours gives every client in this process quiet locks in addition to the workload: keys
	// that no other client wants, held under renewal or taken now and then. See [oracle.Victims]. A
	// subject that is no [workload.Renewer] holds none.
	Neighbours bool

	// Oracles are the caller's oracles, which judge the run in addition to the oracles of this
	// package. The caller's faults are in the plan that names them, see plan.Plan.Own.
	Oracles []Oracle

	Limits Limits
	// Dir is where report.html, report.json, junit.xml and history.jsonl are written; it is made when it is missing.
	// Default: "chaos-report" in the working directory.
	Dir string
	// HTML, JSON and JUnit name additional files for these reports; Dir may be empty then.
	HTML, JSON, JUnit string
	// Replay is the command to print for running this again. Default: one for the redlock-chaos command.
	Replay string
	// ReplayFlags are added to that default command: " -compose docker-compose.chaos.yml".
	ReplayFlags string
	// Progress gets a line about four times a second while the run lasts. Default: none.
	Progress func(Progress)
	// Log gets a line for every fault that comes on. Default: none.
	Log io.Writer

	given bool // the plan is the caller's
}

// Limits are the numbers of the oracles.
type Limits struct {
	// Done is how late Done may close after the bound, for the scheduler. Default: 150 ms.
	Done time.Duration
	// Orphan is how long a key may outlive its hold once everything is healed. Default: 1.5 s.
	Orphan time.Duration
	// Liveness is how long a free key may go unacquired while a client with a majority asks for it.
	// Default: the ttl plus 3 s.
	Liveness time.Duration
	// Outage is for how long in all, while one kind of fault is on, keys may stay free although a
	// client with a majority wants them. Default: half the ttl and half a second.
	Outage time.Duration
	// Context is for how long an acquisition may go on after the context of its caller has ended. Default: a twentieth
	// of the ttl and a quarter of a second.
	Context time.Duration
	// Pace is how long an acquisition may take, and a release, when nothing is in its way. Default: a quarter of the
	// ttl and half a second.
	Pace time.Duration
	// Operations is the share of releases, and of extensions, that must not fail. A lower share is a violation only if
	// chance does not explain it. Default: 0.5, and 0.8 if no fault came on.
	Operations float64
	// Victim is how long a neighbour may take to acquire a key that no other client wants. Default:
	// half a second.
	Victim time.Duration
	// Reentry is how long the owner of a reentrant lock may wait to enter again. Default: half the ttl.
	Reentry time.Duration
	// Recovery is how long it may take after a majority came back until every key is acquired. Default: the ttl plus 3
	// s.
	Recovery time.Duration
	// Availability is the share of attempts with a majority in reach that must not fail. Default: 1.
	Availability float64
	// Judged is the share of all attempts that has to be judged for it; with less the verdict is unknown. Default: 0.1.
	Judged float64
	// Enough is how many acquisitions a run must have; with fewer the verdict is unknown. Default: half
	// of the holds that fit into the run one after another, 5 at least and 10 at most; for a history
	// alone, 10.
	Enough int
	// Stalled is the largest share of the time that the machine may give the run no processor time;
	// with more the verdict is unknown. Default: 0.5.
	Stalled float64
	// Settle is how long after a majority came back attempts begin to count for it. Default: 1 s.
	Settle time.Duration
	// Goroutines is how long goroutines of the subject may outlive its clients, which have been closed. Default: 1 s.
	Goroutines time.Duration
	// Register is the time for checking each register. Default: 10 s.
	Register time.Duration
	// Tail is how long the workload goes on after the last fault. Default: 1.5 s.
	Tail time.Duration
}

// Progress is the state of a run.
type Progress struct {
	Elapsed, Total time.Duration
	Operations     int
	Acquired       int
	Faults         int
	// On are the names of the faults that are on.
	On []string
}

func (c Config) withDefaults() (Config, error) {
	if c.Subject == nil {
		c.Subject = Redlock()
	}
	if c.Backend == "" {
		c.Backend = "embedded"
	}
	if c.Backends == nil {
		c.Backends = masters.Standard()
	}
	if c.Scenario == "" {
		c.Scenario = "broken-network"
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Dir == "" {
		c.Dir = "chaos-report"
	}
	c.given = c.Plan != nil
	if err := checkOwn(c.Oracles); err != nil {
		return c, err
	}
	if err := c.drawPlan(); err != nil {
		return c, err
	}
	if c.Replay == "" {
		c.Replay = c.replay()
	}
	c.HTML = orElse(c.HTML, filepath.Join(c.Dir, "report.html"))
	c.JSON = orElse(c.JSON, filepath.Join(c.Dir, "report.json"))
	c.JUnit = orElse(c.JUnit, filepath.Join(c.Dir, "junit.xml"))
	return c, nil
}

func (c *Config) drawPlan() error {
	if c.given {
		own := *c.Plan // the caller's stays as it is
		if own.Seed == 0 {
			own.Seed = c.Seed
		}
		c.Plan, c.Seed = &own, own.Seed
		c.Plan.TTL = orElse(plan.Duration(c.TTL), own.TTL)
		return c.Plan.Complete()
	}
	scenario, err := plan.FindScenario(c.Scenario)
	if err != nil {
		return err
	}
	c.Plan, err = scenario.Draw(c.Seed, plan.Size{Masters: c.Masters, Clients: c.Clients, Duration: c.Duration})
	if err == nil && c.TTL > 0 {
		c.Plan.TTL = plan.Duration(c.TTL)
	}
	return err
}

// replay returns the command that runs the same plan again, on the same kind of masters. The
// command can't repeat the interleaving. For a subject that the command does not know, it uses the
// program that has the subject.
func (c *Config) replay() string {
	p := c.Plan
	if _, err := FindSubject(c.Subject.Name()); err != nil || c.given {
		return fmt.Sprintf("the same program, with chaos.Config{Backend: %q, Scenario: %q, Seed: %d, Masters: %d, "+
			"Clients: %d, Duration: %d, TTL: %d} for %s",
			c.Backend, p.Scenario, p.Seed, p.Masters, p.Clients, p.Duration, c.TTL, c.Subject.Name())
	}
	command := fmt.Sprintf("redlock-chaos run -subject %s -backend %s -masters %d -clients %d -duration %s -seed %d "+
		"-scenario %s",
		c.Subject.Name(), c.Backend, p.Masters, p.Clients, time.Duration(p.Duration), p.Seed, p.Scenario)
	if c.TTL > 0 {
		command += fmt.Sprintf(" -ttl %s", c.TTL)
	}
	if c.Neighbours {
		command += " -neighbours"
	}
	return command + c.Options.Flags() + c.ReplayFlags
}

func (l Limits) withDefaults(ttl time.Duration) Limits {
	l.Done = orElse(l.Done, 150*time.Millisecond)
	l.Orphan = orElse(l.Orphan, 1500*time.Millisecond)
	l.Liveness = orElse(l.Liveness, ttl+3*time.Second)
	l.Outage = orElse(l.Outage, ttl/2+500*time.Millisecond)
	l.Context = orElse(l.Context, ttl/20+250*time.Millisecond)
	l.Pace = orElse(l.Pace, ttl/4+500*time.Millisecond)
	l.Victim = orElse(l.Victim, 500*time.Millisecond)
	l.Reentry = orElse(l.Reentry, ttl/2)
	l.Recovery = orElse(l.Recovery, ttl+3*time.Second)
	l.Availability = orElse(l.Availability, 1)
	l.Judged = orElse(l.Judged, 0.1)
	l.Stalled = orElse(l.Stalled, 0.5)
	l.Settle = orElse(l.Settle, time.Second)
	l.Goroutines = orElse(l.Goroutines, time.Second)
	l.Register = orElse(l.Register, 10*time.Second)
	l.Tail = orElse(l.Tail, 1500*time.Millisecond)
	return l
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
