// Command redlock-chaos finds out whether a lock holds while networks, servers, clocks and clients break.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/sim"
	"github.com/seed-624411e5/redlock/chaos/virtual"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// The exit statuses. Only a pass is 0.
const (
	exitPass      = 0
	exitViolation = 1
	exitUsage     = 2
	exitUnknown   = 3
	exitSetup     = 4
)

// command is a subcommand: it reads its own flags and returns an exit status.
type command struct {
	name, text string
	run        func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// commands returns the subcommands, in the order of the help text.
func commands() []command {
	return []command{
		{"run", "run a scenario and judge it", runCommand},
		{"gate", "run the recommended scenarios, for a pipeline", gateCommand},
		{"sim", "run schedules in virtual time, on simulated masters", sim.Main},
		{"virtual", "run schedules of any Go lock in virtual time, on masters in memory", virtualCommand},
		{"check", "judge a history that was recorded before", checkCommand},
		{"list", "list scenarios, workloads, faults, backends and subjects", listCommand},
		{"controls", "show that every broken lock is caught", controlsCommand},
		{"kinds", "show that no correct lock is convicted because it lacks something", kindsCommand},
		{"mutants", "show that every mistake in the library's source is caught", mutantsCommand},
	}
}

// virtualCommand runs the subjects that dial as they are told.
func virtualCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var all []virtual.Entry
	for _, s := range chaos.Subjects() {
		if _, ok := s.(workload.Secured); ok {
			all = append(all, virtual.Entry{Subject: s})
		}
	}
	return virtual.Main(ctx, all, args, stdout, stderr)
}

func main() {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	log.SetDefault(log.NewNoopLogger()) // Testcontainers introduces itself at length
	logging.Disable()                   // the clients meet broken connections by the hundred; reports say what matters
	workload.Main(chaos.Subjects()...)  // does not return in a worker process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	status := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, args[1:], stdout, stderr)
			}
		}
		if args[0] != "-h" && args[0] != "-help" && args[0] != "--help" && args[0] != "help" {
			fmt.Fprintf(stderr, "redlock-chaos: no command %q\n", args[0])
		}
	}
	fmt.Fprintln(stderr, "usage: redlock-chaos COMMAND [flags]")
	for _, c := range commands() {
		fmt.Fprintf(stderr, "  %-9s %s\n", c.name, c.text)
	}
	fmt.Fprintln(stderr, "exit status: 0 pass, 1 violation, 2 usage, 3 unknown, 4 the run could not be set up")
	return exitUsage
}

// flagSet is a set of flags that returns its errors instead of ending the process.
func flagSet(name string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("redlock-chaos "+name, flag.ContinueOnError)
	f.SetOutput(stderr)
	return f
}

// parsed parses args. It reports false after it has printed what is wrong, or the help.
func parsed(f *flag.FlagSet, args []string, stderr io.Writer) bool {
	switch {
	case f.Parse(args) != nil:
		return false
	case f.NArg() > 0:
		what := strconv.Quote(f.Arg(0))
		if strings.ContainsAny(what, "@:") { // a part of a list of masters, with its passwords
			what = "after the flags; a list with blanks has to be quoted"
		}
		fmt.Fprintf(stderr, "%s: unexpected argument %s\n", f.Name(), what)
		return false
	}
	return true
}

func setupFailed(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "redlock-chaos: %v\n", err)
	return exitSetup
}
