package main

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

// config holds the checked flags.
type config struct {
	scenarios  []scenario.Scenario
	subjects   []subject.Subject
	addrs      []string
	workers    []int
	masters    int
	duration   time.Duration
	repeat     int
	bound      time.Duration
	rate       float64
	contenders int
	contendFor time.Duration
	hold       time.Duration
	holds      int
	json       string
	plots      string
	check      bool
}

// parse reads the flags. Invalid flags are an error here, before any server is started.
func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	var scenarios, subjects, workers, addrs string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&scenarios, "scenario", "", "comma-separated `names` of the scenarios to run; all by default:\n"+
		strings.Join(scenarioNames(), ", "))
	fs.StringVar(&subjects, "subjects", "", "comma-separated `names` of the subjects to compare; all by default:\n"+
		strings.Join(subjectNames(), ", "))
	fs.StringVar(&workers, "workers", "", "comma-separated `numbers` of workers, for every scenario that has "+
		"several; default: the scenario's own")
	fs.StringVar(&addrs, "addrs", "", "comma-separated `host:port` of masters that run already; default: start some.\n"+
		"They are not emptied: keys expire by themselves. The scenario stopped\nand the subjects with separate "+
		"servers are left out")
	fs.IntVar(&c.masters, "masters", 5, "`number` of masters, in every scenario except masters")
	fs.DurationVar(&c.duration, "duration", 3*time.Second, "how long each subject is measured at a time")
	fs.IntVar(&c.repeat, "repeat", 3, "how often everything is measured; medians are shown")
	fs.DurationVar(&c.bound, "bound", 15*time.Second, "how long after the duration an operation counts as unfinished")
	fs.Float64Var(&c.rate, "rate", 0, "start this many cycles a second and measure each from its planned start (open "+
		"loop); default: each starts when the last one ends (closed loop)")
	fs.IntVar(&c.contenders, "contenders", 32, "`number` of clients of the scenarios contended and distant")
	fs.DurationVar(&c.contendFor, "contend", 0, "how long they contend, there and in cohort; default: ten times "+
		"-duration")
	fs.DurationVar(&c.hold, "hold", 2*time.Millisecond, "how long each client keeps the key")
	fs.IntVar(&c.holds, "holds", 100_000, "`number` of holds in the scenario renewed")
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
	if c.scenarios, err = scenario.Find(list(scenarios)); err != nil {
		return err
	}
	if c.subjects, err = subject.Find(list(subjects)); err != nil {
		return err
	}
	for _, w := range list(workers) {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return fmt.Errorf("-workers: %q is no number of workers", w)
		}
		c.workers = append(c.workers, n)
	}
	if c.addrs = list(addrs); len(c.addrs) > 0 {
		given := false
		fs.Visit(func(f *flag.Flag) { given = given || f.Name == "masters" })
		if !given {
			c.masters = len(c.addrs)
		}
		if c.masters > len(c.addrs) {
			return fmt.Errorf("-masters: %d of %d addresses", c.masters, len(c.addrs))
		}
	}
	if c.contendFor == 0 {
		c.contendFor = 10 * c.duration
	}
	return c.sane()
}

func (c *config) sane() error {
	for name, n := range map[string]int{
		"masters": c.masters, "repeat": c.repeat, "contenders": c.contenders, "holds": c.holds,
	} {
		if n < 1 {
			return fmt.Errorf("-%s: %d, but it takes at least 1", name, n)
		}
	}
	for name, d := range map[string]time.Duration{
		"duration": c.duration, "contend": c.contendFor, "hold": c.hold, "bound": c.bound,
	} {
		if d <= 0 {
			return fmt.Errorf("-%s: %v, but it takes some time", name, d)
		}
	}
	if c.rate < 0 {
		return fmt.Errorf("-rate: %g cycles a second", c.rate)
	}
	return nil
}

// list splits at commas and drops blanks; an empty text is an empty list.
func list(text string) []string {
	var out []string
	for s := range strings.SplitSeq(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func scenarioNames() []string {
	var out []string
	for _, s := range scenario.All() {
		out = append(out, s.Name)
	}
	return out
}

func subjectNames() []string {
	var out []string
	for _, s := range subject.All() {
		out = append(out, s.Name())
	}
	return out
}
