package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/names"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// config holds the checked flags. Its Env has no servers yet.
type config struct {
	scenario.Env
	scenarios   []scenario.Scenario
	addrs       []string
	json, plots string
	check       bool
}

// parse reads the flags. Invalid flags are an error here, before any server is started.
func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	var scenarios, subjects, workers, addrs string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&scenarios, "scenario", "", "comma-separated `names` of the scenarios to run; all by default:\n"+
		strings.Join(scenario.Names(), ", "))
	fs.StringVar(&subjects, "subjects", "", "comma-separated `names` of the subjects to compare; all by default:\n"+
		strings.Join(subject.Names(), ", "))
	fs.StringVar(&workers, "workers", "", "comma-separated `numbers` of workers, for every scenario that has "+
		"several; default: the scenario's own")
	fs.StringVar(&addrs, "addrs", "", "comma-separated `host:port` of masters that run already; default: start some.\n"+
		"They are not emptied: keys expire by themselves. The scenario stopped\nand the subjects with separate "+
		"servers are left out")
	fs.IntVar(&c.Masters, "masters", 5, "`number` of masters, in every scenario except masters")
	fs.DurationVar(&c.Duration, "duration", 3*time.Second, "how long each subject is measured at a time")
	fs.IntVar(&c.Repeat, "repeat", 3, "how often everything is measured; medians are shown")
	fs.DurationVar(&c.Bound, "bound", 15*time.Second, "how long after the duration an operation counts as unfinished")
	fs.Float64Var(&c.Rate, "rate", 0, "start this many cycles a second and measure each from its planned start (open "+
		"loop); default: each starts when the last one ends (closed loop)")
	fs.IntVar(&c.Contenders, "contenders", 32, "`number` of clients of the scenarios contended and distant")
	fs.DurationVar(&c.ContendFor, "contend", 0, "how long they contend, there and in cohort; default: ten times "+
		"-duration")
	fs.DurationVar(&c.Hold, "hold", 2*time.Millisecond, "how long each client keeps the key")
	fs.IntVar(&c.Holds, "holds", 100_000, "`number` of holds in the scenario renewed")
	fs.StringVar(&c.json, "json", "", "write all rows to this `file` as JSON")
	fs.StringVar(&c.plots, "plots", "", "write every plot into this `directory`, as SVG for light and for dark pages")
	fs.BoolVar(&c.check, "check", false, "compare the results with the targets; exit status 1 if one is missed "+
		"(goals do not count)")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	err := c.resolve(fs, scenarios, subjects, workers, addrs)
	return c, err
}

// resolve looks up the named scenarios and subjects, and checks the numbers.
func (c *config) resolve(fs *flag.FlagSet, scenarios, subjects, workers, addrs string) (err error) {
	if c.scenarios, err = scenario.Find(names.Split(scenarios)); err != nil {
		return err
	}
	if c.Subjects, err = subject.Find(names.Split(subjects)); err != nil {
		return err
	}
	for _, w := range names.Split(workers) {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return fmt.Errorf("-workers: %q is no number of workers", w)
		}
		c.Workers = append(c.Workers, n)
	}
	if c.addrs = names.Split(addrs); len(c.addrs) > 0 {
		given := false
		fs.Visit(func(f *flag.Flag) { given = given || f.Name == "masters" })
		if !given {
			c.Masters = len(c.addrs)
		}
		if c.Masters > len(c.addrs) {
			return fmt.Errorf("-masters: %d of %d addresses", c.Masters, len(c.addrs))
		}
	}
	c.ContendFor = cmp.Or(c.ContendFor, 10*c.Duration)
	return c.sane()
}

func (c *config) sane() error {
	for name, n := range map[string]int{
		"masters": c.Masters, "repeat": c.Repeat, "contenders": c.Contenders, "holds": c.Holds,
	} {
		if n < 1 {
			return fmt.Errorf("-%s: %d, but it takes at least 1", name, n)
		}
	}
	for name, d := range map[string]time.Duration{
		"duration": c.Duration, "contend": c.ContendFor, "hold": c.Hold, "bound": c.Bound,
	} {
		if d <= 0 {
			return fmt.Errorf("-%s: %v, but it takes some time", name, d)
		}
	}
	if c.Rate < 0 {
		return fmt.Errorf("-rate: %g cycles a second", c.Rate)
	}
	return nil
}
