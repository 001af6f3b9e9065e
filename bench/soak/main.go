// Command soak keeps a few Lockers busy for a long time, on five masters that it stops, kills, cuts off and restarts.
// It checks whether the use of memory, goroutines and open files grows.
//
//	go run ./bench/soak -for 1h -plot soak.svg
//
// It does everything at once that a program does with locks: locks on new keys, contended keys, cancelled waits, fenced
// and shared locks, locks on several keys, and renewed holds. The status is 0 if nothing grew and 1 if something did.
// It is 3 if the run shows nothing, because planned work did not happen or the time was too short.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
)

const (
	exitFlat    = 0
	exitGrew    = 1
	exitUsage   = 2
	exitUnknown = 3
	exitSetup   = 4
)

// masters are how many servers are started.
const masters = 5

func main() {
	cli.Main(run)
}

type settings struct {
	lasts, every, rest time.Duration
	lockers            int
	seed               uint64
	plot, json         string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.DurationVar(&s.lasts, "for", time.Hour, "how long to run")
	f.DurationVar(&s.every, "every", 10*time.Second, "interval between two samples of memory, each after a garbage "+
		"collection")
	f.DurationVar(&s.rest, "rest", 20*time.Millisecond, "longest pause of a goroutine between two locks; each Locker "+
		"has 35 goroutines")
	f.IntVar(&s.lockers, "lockers", 3, "`number` of Lockers")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the keys, times and faults")
	f.StringVar(&s.plot, "plot", "", "draw the samples into this SVG `file`")
	f.StringVar(&s.json, "json", "", "write the samples and counts into this `file`")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitFlat
	case err != nil:
		return exitUsage
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case s.lasts <= 0 || s.every <= 0 || s.rest <= 0 || s.lockers < 1:
		err = fmt.Errorf("-for, -every, -rest and -lockers have to be positive")
	}
	if err != nil {
		return cli.Status(stderr, "soak", err, exitUsage)
	}
	return s.soak(ctx, stdout, stderr)
}

func (s settings) soak(ctx context.Context, stdout, stderr io.Writer) int {
	seen, err := observe(ctx, s, stdout)
	if err != nil {
		return cli.Status(stderr, "soak", err, exitSetup)
	}
	err = cli.WriteJSON(s.json, seen)
	if s.plot != "" {
		err = errors.Join(err, seen.draw(s.plot))
	}
	if err != nil {
		return cli.Status(stderr, "soak", err, exitSetup)
	}
	fmt.Fprintln(stdout, seen)
	grew, unshown := seen.grew(), seen.unshown()
	for _, what := range grew {
		fmt.Fprintln(stdout, "GREW:", what)
	}
	for _, what := range unshown {
		fmt.Fprintln(stdout, "NOT SHOWN:", what)
	}
	switch {
	case len(grew) > 0:
		return exitGrew
	case len(unshown) > 0:
		return exitUnknown
	}
	fmt.Fprintln(stdout, "flat")
	return exitFlat
}
