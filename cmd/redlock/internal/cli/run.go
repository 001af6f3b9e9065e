package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

func runCommand() command {
	return command{
		name:    "run",
		args:    "-- COMMAND [args...]",
		summary: "run a command while holding a lock",
		help: `
Takes the lock on KEY, runs COMMAND, renews the lock while it runs, and gives it back when COMMAND has ended, and everything
that it has started. It waits for the lock until it gets it, unless -wait or -try say otherwise. With -n it takes one of that
many permits of KEY instead.

COMMAND finds REDLOCK_KEY, REDLOCK_OWNER and REDLOCK_TOKEN in its environment, and of a permit REDLOCK_SLOT. The token is a
number that grows with every acquisition of KEY: a resource that refuses smaller ones than it has seen is safe from late
writers. COMMAND runs in a process group of its own; signals sent to redlock are passed on to that group.

A process that COMMAND leaves running, a daemon too, keeps the lock. redlock says after a second whom it waits for. Signals
go to these processes then. If the lock is lost they are ended. -leader-only does not wait for them, and they may work on
under another holder of the lock. What a service manager starts for COMMAND is never waited for. On Linux everything that
descends from COMMAND counts; on other Unix systems what stays in its process group.

If renewals fail, COMMAND is asked to stop (SIGTERM) when -grace is left of the lock's validity, and
killed (SIGKILL) when the validity ends: until then nobody else can have the lock. If the lock is found to be lost all at
once, as when somebody has deleted its keys, COMMAND gets SIGTERM then, and SIGKILL after -grace. It is also killed when
the validity ends while redlock is stopped, and ends the same way when redlock itself is killed.

SIGUSR1 has a redlock that waits say who holds the lock and for how long.

The exit status is COMMAND's, 128 + n if signal n ended it, and otherwise
   64  bad usage                             77  the lock was lost, and COMMAND could not be killed
   69  too few masters can be used           78  -generation is two or more behind
   73  the lock was lost while COMMAND ran   126 COMMAND can't be started
   75  held by another (-try, -wait)         127 COMMAND does not exist
   76  several want it, and nobody was seen to get it (-try)`,
		setup: func(fs *flag.FlagSet) func(context.Context, *terminal, []string) error {
			r := &runner{}
			r.masters.define(fs)
			r.define(fs)
			fs.StringVar(&r.line, "c", "", "run this `line` by sh -c, instead of COMMAND")
			fs.StringVar(&r.textfile, "textfile", "", textfileUsage)
			r.waitAll.on = true
			fs.Var(&r.waitAll, "wait-descendants", "keep the lock until everything that COMMAND has started has ended (default true)")
			fs.BoolVar(&r.leaderOnly, "leader-only", false, "give the lock back when COMMAND itself has ended, whatever it has left running")
			return r.run
		},
	}
}

// runner is one `redlock run`.
type runner struct {
	taker
	line       string // for a shell
	textfile   string // for metrics
	waitAll    toggle
	leaderOnly bool
}

// argv is the command.
func (r *runner) argv(args []string) ([]string, error) {
	switch {
	case r.line != "" && len(args) > 0:
		return nil, usage("run: -c and a command exclude each other; what is to be the line's arguments belongs into the line")
	case r.line != "":
		return []string{"sh", "-c", r.line}, nil
	case len(args) == 0:
		return nil, usage("run: no command")
	}
	return args, nil
}

func (r *runner) run(ctx context.Context, t *terminal, args []string) error {
	argv, err := r.argv(args)
	if err != nil {
		return err
	}
	if err := r.check("run"); err != nil {
		return err
	}
	if r.leaderOnly && r.waitAll.given && r.waitAll.on {
		return usage("run: -leader-only and -wait-descendants exclude each other")
	}
	r.record, err = newRecord(r.textfile, r.keys, func(err error) {
		if err != nil {
			r.log.say(entry{Event: eventTextfile}, "%v", err)
		}
	})
	if err != nil {
		return err
	}
	err = r.guarded(ctx, t, argv)
	if failed := r.record.ended(err); failed != nil && !r.quiet {
		fmt.Fprintln(t.err, "redlock:", shown(failed))
	}
	return err
}

// guarded runs the command under the lock.
func (r *runner) guarded(ctx context.Context, t *terminal, argv []string) error {
	return r.with(ctx, t, []redlock.Option{redlock.AutoRenew()}, func(h *held) (released, err error) {
		s, err := r.start(t, h, argv)
		if err != nil {
			released = h.Release(ctx)
			return released, also(err, released)
		}
		s.guard()
		released = h.Release(ctx)
		return released, s.outcome(released)
	})
}

// start starts the command and whoever watches it.
func (r *runner) start(t *terminal, h *held, argv []string) (*supervisor, error) {
	first := child.Now() + h.Remaining()
	if err := h.Err(); err != nil { // this program was stopped meanwhile
		return nil, err
	}
	watch, err := child.StartWatch()
	if err != nil {
		return nil, &statusError{status: statusCantRun, err: err}
	}
	process, err := child.Start(child.Config{
		Argv: argv, Env: append(ownEnvironment(os.Environ()), r.tells(h, t.getenv)...), Mark: mark(h.Lock), Stdin: t.in, Stdout: t.out, Stderr: t.err,
	})
	if err != nil {
		watch.Dismiss()
		status := statusCantRun
		if child.Missing(err) {
			status = statusNotFound
		}
		return nil, &statusError{status: status, err: err}
	}
	return &supervisor{
		what: r.what(), lock: h.Lock, ttl: r.ttl, grace: r.grace, maxHold: r.maxHold, usedUp: usedUp(first, r.ttl, r.maxHold),
		left: left{leaderOnly: r.leaderOnly || !r.waitAll.on}, process: process, watch: watch, orphanGrace: r.orphanGrace(t.getenv), signals: r.signals, log: r.log, renewals: &r.renewals,
	}, nil
}

// orphanGrace is the grace of a command whose redlock is gone. Under another redlock that is none: what has killed this one may
// be the end of the other's lock, which has asked the command already, through this one. What tells of the other is taken
// away by sudo and env -i.
func (r *runner) orphanGrace(getenv func(string) string) time.Duration {
	if getenv(ownerVariable) != "" || child.Above() {
		return 0
	}
	return r.grace
}

// mark is the entry of the environment by which what the command has started is found, wherever it went.
func mark(lock *redlock.Lock) string { return ownerVariable + "=" + lock.Owner() }

// tells is what the command is told of its lock.
func (r *runner) tells(h *held, getenv func(string) string) []string {
	told := []string{
		"REDLOCK_KEY=" + r.keys.String(), mark(h.Lock), tokenVariable + "=" + r.token(h),
		aboveVariable + "=" + strings.Join(append(above(getenv), h.ID()), " "),
	}
	if h.slot != nil {
		told = append(told, slotVariable+"="+strconv.Itoa(*h.slot))
	}
	return told
}

// ownEnvironment is environ without what only this run was to be told. Where the masters are stays: somebody has put it
// there for every program that is started from here.
func ownEnvironment(environ []string) []string {
	own := runVariables()
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return own[name]
	})
}

// runVariables are the variables that set what one run does, and not where the masters are, and those that tell of a lock.
func runVariables() map[string]bool {
	own := maps.Clone(told)
	fs := newFlags("run")
	(&lockFlags{}).define(fs)
	fs.VisitAll(func(f *flag.Flag) { own[envName(f.Name)] = true })
	return own
}
