package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/names"
	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// usual are the scenarios that run by default: no faults; slow, broken and divided networks; masters that stop, or
// restart with their data; clocks that drift; and holders that pause. In the last scenario masters restart
// without their data, which is beyond the assumptions of all these locks.
var usual = []string{
	"calm", "slow-network", "broken-network", "partitions", "master-outage", "majority-outage", "many-keys", "drift",
	"paused-clients", "amnesia",
}

// config holds the checked flags.
type config struct {
	scenarios     []plan.Scenario
	subjects      []rivals.Rival
	seed          uint64
	seeds         int
	duration      time.Duration
	json, reports string
	command       string
}

// parse reads the flags. Invalid flags are an error here, before any server is started.
func parse(args []string, stderr io.Writer) (config, error) {
	c := config{command: strings.Join(append([]string{"go run ./bench/chaos"}, args...), " ")}
	var scenarios, subjects string
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&scenarios, "scenarios", strings.Join(usual, ","),
		"comma-separated `names` of the scenarios; there are\n"+strings.Join(scenarioNames(), ", "))
	fs.StringVar(&subjects, "subjects", "", "comma-separated `names` of the subjects; there are\n"+
		strings.Join(rivals.Names(), ", ")+"\n(default: the subjects with default settings, and naive)")
	fs.Uint64Var(&c.seed, "seed", 1, "seed of the plans: the same `number` gives the same plans")
	fs.IntVar(&c.seeds, "seeds", 1, "how many seeds, from -seed on; counts are added up, and the worst time is shown")
	fs.DurationVar(&c.duration, "duration", 10*time.Second, "how long the workload of each run lasts")
	fs.StringVar(&c.json, "json", "", "write every run to this `file` as JSON")
	fs.StringVar(&c.reports, "reports", "", "keep each run's report and history in this `directory`, by scenario, "+
		"seed and subject")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	switch {
	case c.seed == 0:
		return c, fmt.Errorf("-seed: 0 means no seed, give another number")
	case c.seeds < 1:
		return c, fmt.Errorf("-seeds: %d, but it takes at least 1", c.seeds)
	case c.duration < time.Second:
		return c, fmt.Errorf("-duration: %v, but it takes at least 1s for anything to happen", c.duration)
	}
	var err error
	if c.subjects, err = rivals.Find(names.Split(subjects)); err != nil {
		return c, err
	}
	c.scenarios, err = findScenarios(names.Split(scenarios))
	return c, err
}

// findScenarios returns the named scenarios in the order of their names.
func findScenarios(wanted []string) ([]plan.Scenario, error) {
	var out []plan.Scenario
	for _, n := range wanted {
		s, err := plan.FindScenario(n)
		if err != nil {
			return nil, err
		}
		profile, err := workload.FindProfile(s.Workload)
		if err != nil {
			return nil, err
		}
		if profile.Children > 0 {
			return nil,
				fmt.Errorf("scenario %s kills clients that are processes, and only redlock-chaos can start those", n)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("-scenarios: none is named")
	}
	return out, nil
}

func scenarioNames() []string {
	return names.Of(plan.Scenarios(), func(s plan.Scenario) string { return s.Name })
}
