package cli

import (
	"context"
	"flag"
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
Takes the lock on KEY, runs COMMAND, and renews the lock while COMMAND runs. Releases the lock when COMMAND and all
processes that it has started have ended. It waits until it gets the lock, unless -wait or -try say otherwise. With -n
it takes one of that many permits of KEY instead.

COMMAND gets REDLOCK_KEY, REDLOCK_OWNER and REDLOCK_TOKEN in its environment, and with a permit also REDLOCK_SLOT. The
token is a number that grows with every acquisition of KEY. A resource that remembers the greatest token and refuses
smaller ones is safe from late writers. COMMAND runs in a new process group, and redlock passes its signals on to that
group.

A process that COMMAND leaves running keeps the lock, even a daemon. After a second, redlock names the processes that
it waits for, and from then on passes signals to them. If the lock is lost, redlock ends them. With -leader-only
redlock does not wait for them, and they may go on working under another holder of the lock. Processes that a service
manager starts for COMMAND never count. On Linux all descendants of COMMAND count; on other Unix systems, the
processes that stay in its process group.

If renewals fail, COMMAND gets SIGTERM when -grace is left of the lock's validity, and SIGKILL when the validity ends.
Until then no one else can have the lock. If the lock is lost at once, for example because its keys were deleted,
COMMAND gets SIGTERM immediately and SIGKILL after -grace. COMMAND is also killed if the validity ends while redlock
is stopped. It ends the same way if redlock itself is killed.

Send SIGUSR1 to a waiting redlock to see who holds the lock and for how long.

The exit status is that of COMMAND, 128 + n if signal n ended it, or
    64  bad usage
    69  too few masters can be used
    73  the lock was lost while COMMAND ran
    74  the metrics of -textfile can't be written before the command starts
    75  another holds the lock (-try, -wait)
    76  several want the lock, and none was seen to get it (-try)
    77  the lock was lost, and COMMAND could not be killed
    78  -generation is two or more behind
   126  COMMAND can't be started
   127  COMMAND does not exist`,
		setup: func(fs *flag.FlagSet) action {
			r := &runner{}
			r.masters.define(fs)
			r.define(fs)
			fs.StringVar(&r.line, "c", "", "run this `line` by sh -c, instead of COMMAND")
			fs.StringVar(&r.textfile, "textfile", "", textfileUsage)
			r.waitAll.on = true
			r.waitAll.define(fs, "wait-descendants", "keep the lock until all processes that COMMAND has started have "+
				"ended (default true)")
			fs.BoolVar(&r.leaderOnly, "leader-only", false,
				"release the lock when COMMAND itself has ended, even if it has left processes running")
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

func (r *runner) argv(args []string) ([]string, error) {
	switch {
	case r.line != "" && len(args) > 0:
		return nil, usage("run: -c and a command exclude each other; put the arguments into the line")
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
		r.log.say(entry{Event: eventTextfile}, "%v", err)
	})
	if err != nil {
		return err
	}
	err = r.guarded(ctx, t, argv)
	if failed := r.record.ended(err); failed != nil {
		late := *r.log
		late.notes = newNotes(t.err)
		late.say(entry{Event: eventTextfile}, "%v", failed)
		late.notes.flush()
	}
	return err
}

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

func (r *runner) start(t *terminal, h *held, argv []string) (*supervisor, error) {
	first := child.Now() + h.Remaining()
	if err := h.Err(); err != nil { // the lock expired, because this program was stopped for a while
		return nil, err
	}
	watch, err := child.StartWatch()
	if err != nil {
		return nil, exit(statusCantRun, "%w", err)
	}
	process, err := child.Start(child.Config{
		Argv: argv, Env: append(ownEnvironment(), r.tells(h)...), Mark: mark(h.Lock), Stdin: t.in,
		Stdout: t.out, Stderr: t.err,
	})
	if err != nil {
		watch.Dismiss()
		status := statusCantRun
		if child.Missing(err) {
			status = statusNotFound
		}
		return nil, exit(status, "%w", err)
	}
	return &supervisor{
		what: r.what(), lock: h.Lock, ttl: r.ttl, grace: r.grace, maxHold: r.maxHold,
		usedUp: usedUp(first, r.ttl, r.maxHold),
		left:   left{leaderOnly: r.leaderOnly || !r.waitAll.on}, process: process, watch: watch,
		orphanGrace: r.orphanGrace(), signals: r.signals, log: r.log, renewals: &r.renewals,
		fromKeyboard: child.HearsKeyboard,
	}, nil
}

// orphanGrace returns the grace of a command after its redlock is gone. Under another redlock it is 0. The end of the
// outer lock may be what killed this redlock. Then the outer redlock has already asked the command to end, through this
// one. sudo and env -i remove the variables that show an outer redlock.
func (r *runner) orphanGrace() time.Duration {
	if os.Getenv(ownerVariable) != "" || child.Above() {
		return 0
	}
	return r.grace
}

// mark returns an entry of the environment. By this entry redlock finds every process that the command has started,
// wherever it went.
func mark(lock *redlock.Lock) string { return ownerVariable + "=" + lock.Owner() }

// tells returns the variables that describe the lock to the command.
func (r *runner) tells(h *held) []string {
	told := []string{
		"REDLOCK_KEY=" + strings.Join(r.keys, "\n"), mark(h.Lock), tokenVariable + "=" + r.token(h),
		aboveVariable + "=" + strings.Join(append(above(), h.ID()), " "),
	}
	if h.slot != nil {
		told = append(told, slotVariable+"="+strconv.Itoa(*h.slot))
	}
	return told
}

// ownEnvironment returns the environment without the settings of this run alone, and without what describes another
// lock. It keeps the masters' URLs, because they apply to every program that is started from here.
func ownEnvironment() []string {
	own := maps.Clone(told)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	(&lockFlags{}).define(fs)
	fs.VisitAll(func(f *flag.Flag) { own[envName(f.Name)] = true })
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return own[name]
	})
}
