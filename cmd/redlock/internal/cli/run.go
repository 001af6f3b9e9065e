package cli

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

// graceShare of the ttl, or of -max-hold, is the default grace.
const graceShare = 6

func runCommand() command {
	return command{
		name:    "run",
		args:    "-- COMMAND [args...]",
		summary: "run a command while holding a lock",
		help: `
Takes the lock on KEY, runs COMMAND, renews the lock while it runs, and gives it back when COMMAND has ended. It waits
for the lock until it gets it, unless -wait or -try say otherwise.

COMMAND finds REDLOCK_KEY, REDLOCK_OWNER and REDLOCK_TOKEN in its environment. The token is a number that grows with
every acquisition of KEY: a resource that refuses smaller ones than it has seen is safe from late writers. COMMAND runs in a
process group of its own; signals sent to redlock are passed on to that group. On Linux what leaves that group, as what a
script starts by timeout or a daemon does, is ended with the lock if REDLOCK_OWNER is in its environment, which it inherits;
on other systems it is not. Nor is what COMMAND leaves running in the background when it ends.

If renewals fail, COMMAND is asked to stop (SIGTERM) when -grace is left of the lock's validity, and
killed (SIGKILL) when the validity ends: until then nobody else can have the lock. If the lock is found to be lost all at
once, as when somebody has deleted its keys, COMMAND gets SIGTERM then, and SIGKILL after -grace. It is also killed when
the validity ends while redlock is stopped, and ends the same way when redlock itself is killed.

The exit status is COMMAND's, 128 + n if signal n ended it, and otherwise
   64  bad usage                             77  the lock was lost, and COMMAND could not be killed
   69  too few masters can be used           78  -generation is two or more behind
   73  the lock was lost while COMMAND ran   126 COMMAND can't be started
   75  held by another (-try, -wait)         127 COMMAND does not exist`,
		setup: func(fs *flag.FlagSet) func(context.Context, *terminal, []string) error {
			r := &runner{}
			r.masters.define(fs)
			fs.StringVar(&r.key, "key", "", "`key` of the lock")
			durationVar(fs, &r.ttl, "ttl", 30*time.Second, "`time` after which a lock is free whose holder has died (default 30s)")
			durationVar(fs, &r.wait, "wait", forever, "give up after this `time`; 0s: make one attempt (default: wait until the lock is free)")
			fs.BoolVar(&r.try, "try", false, "make one attempt, whatever -wait says")
			durationVar(fs, &r.grace, "grace", 0, "`time` from SIGTERM to SIGKILL when the lock is being lost, at most half the ttl (default: a sixth of it, or of -max-hold)")
			durationVar(fs, &r.maxHold, "max-hold", 0, "take the lock away from a command after this `time`: it gets SIGTERM -grace earlier (default: never)")
			fs.BoolVar(&r.fenced, "fenced", true, "take a fencing token; -fenced=false for a user without rights to the counters (default true)")
			fs.BoolVar(&r.quiet, "quiet", false, "do not say on standard error what is waited for")
			return r.run
		},
	}
}

// runner is one `redlock run`.
type runner struct {
	masters            masterFlags
	key                string
	ttl, wait          time.Duration
	grace, maxHold     time.Duration
	try, quiet, fenced bool
	notes              *notes
	signals            chan os.Signal
	renewals           renewals
}

func (r *runner) check(args []string) error {
	switch {
	case len(args) == 0:
		return usage("run: no command")
	case r.key == "":
		return usage("run: no key: give -key, REDLOCK_KEY or a configuration file (under a redlock, whose own key that variable holds, only -key)")
	case r.ttl < time.Millisecond:
		return usage("run: -ttl is %v, and must be at least a millisecond", r.ttl)
	case r.wait < 0:
		return usage("run: -wait is %v, and can't be negative", r.wait)
	case r.grace < 0:
		return usage("run: -grace is %v, and can't be negative", r.grace)
	case r.maxHold < 0:
		return usage("run: -max-hold is %v, and can't be negative", r.maxHold)
	}
	if r.grace == 0 {
		r.grace = r.ttl / graceShare
		if r.maxHold > 0 {
			r.grace = min(r.grace, r.maxHold/graceShare)
		}
	}
	switch {
	case r.grace > r.ttl/2:
		return usage("run: -grace %v is more than half of -ttl %v: renewals would have no time to be repeated", r.grace, r.ttl)
	case r.maxHold > 0 && r.maxHold <= r.grace:
		return usage("run: -max-hold %v is no longer than -grace %v, which is taken off it: the command would be ended as soon as it began", r.maxHold, r.grace)
	}
	return nil
}

func (r *runner) run(ctx context.Context, t *terminal, args []string) error {
	if err := r.check(args); err != nil {
		return err
	}
	locker, masters, err := r.masters.locker(r.renewals.observe)
	if err != nil {
		return err
	}
	defer masters.close()
	child.WriteErrors() // nobody who stops reading ends the supervision
	r.notes = newNotes(t.err)
	defer r.notes.flush()
	r.signals = make(chan os.Signal, 16)
	signal.Notify(r.signals, slices.DeleteFunc(child.Forwarded(), func(sig os.Signal) bool { return !child.Ends(sig) })...)
	defer signal.Stop(r.signals)

	lock, err := r.acquire(ctx, locker)
	if err != nil {
		closeSoon(locker, attemptTimeout)
		return err
	}
	s, err := r.start(t, lock, args)
	if err != nil {
		err = also(err, lock.Release(ctx))
		closeSoon(locker, closeTimeout)
		return err
	}
	s.guard()
	released := lock.Release(ctx)
	if released == nil {
		closeSoon(locker, confirmedTimeout)
	} else {
		closeSoon(locker, closeTimeout)
	}
	return s.outcome(released)
}

// start starts the command and whoever watches it.
func (r *runner) start(t *terminal, lock *redlock.Lock, args []string) (*supervisor, error) {
	first := child.Now() + lock.Remaining()
	if err := lock.Err(); err != nil { // this program was stopped meanwhile
		return nil, err
	}
	watch, err := child.StartWatch()
	if err != nil {
		return nil, &statusError{status: statusCantRun, err: err}
	}
	process, err := child.Start(child.Config{
		Argv: args, Env: append(ownEnvironment(os.Environ()), r.tells(lock)...), Mark: mark(lock), Stdin: t.in, Stdout: t.out, Stderr: t.err,
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
		key: r.key, lock: lock, ttl: r.ttl, grace: r.grace, maxHold: r.maxHold, usedUp: usedUp(first, r.ttl, r.maxHold),
		process: process, watch: watch, orphanGrace: r.orphanGrace(t.getenv), signals: r.signals, notes: r.notes, quiet: r.quiet,
		renewals: &r.renewals,
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
func (r *runner) tells(lock *redlock.Lock) []string {
	told := []string{"REDLOCK_KEY=" + r.key, mark(lock), "REDLOCK_TOKEN="}
	if r.fenced {
		told[2] += strconv.FormatUint(lock.Token(), 10)
	}
	return told
}

// ownEnvironment is environ without what only this run was to be told. Where the masters are stays: somebody has put it
// there for every program that is started from here.
func ownEnvironment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(runSettings, name)
	})
}

// runSettings are the variables that set what one run does, and not where the masters are, and those that tell of a lock.
var runSettings = []string{
	"REDLOCK_KEY", "REDLOCK_TTL", "REDLOCK_WAIT", "REDLOCK_TRY", "REDLOCK_GRACE", "REDLOCK_MAX_HOLD", "REDLOCK_FENCED", "REDLOCK_QUIET",
	ownerVariable, "REDLOCK_TOKEN",
}
