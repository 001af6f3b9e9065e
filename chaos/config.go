package chaos

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Report has the findings of a run.
type Report = report.Report

// Limits are the numbers of the oracles.
type Limits = oracle.Limits

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
	// TTL replaces the workload's ttl. A lock that gives each request a share of the ttl needs a long ttl on a slow or
	// busy machine. At a ttl of 2 s this library waits 100 ms for a master. Default: the plan's.
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
	if c.Backends == nil {
		c.Backends = masters.Standard()
	}
	c.Backend, c.Scenario = cmp.Or(c.Backend, "embedded"), cmp.Or(c.Scenario, "broken-network")
	c.Seed, c.Dir = cmp.Or(c.Seed, 1), cmp.Or(c.Dir, "chaos-report")
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
	c.HTML = cmp.Or(c.HTML, filepath.Join(c.Dir, "report.html"))
	c.JSON = cmp.Or(c.JSON, filepath.Join(c.Dir, "report.json"))
	c.JUnit = cmp.Or(c.JUnit, filepath.Join(c.Dir, "junit.xml"))
	return c, nil
}

func (c *Config) drawPlan() error {
	if c.given {
		own := *c.Plan // the caller's stays as it is
		own.Seed = cmp.Or(own.Seed, c.Seed)
		c.Plan, c.Seed = &own, own.Seed
		c.Plan.TTL = cmp.Or(plan.Duration(c.TTL), own.TTL)
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

// replay returns the command that runs the same plan again, on the same kind of masters. The command can't repeat the
// interleaving. For a subject that the command does not know, it uses the program that has the subject.
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
