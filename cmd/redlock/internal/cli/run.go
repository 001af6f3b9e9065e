package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

const (
	// graceShare of the ttl is the default grace.
	graceShare = 6
	// closeTimeout bounds how long the command's end is delayed by masters that do not confirm the release.
	closeTimeout = 2 * time.Second
)

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
process group of its own; signals sent to redlock are passed on to that group. What COMMAND leaves running in the background
when it ends is not protected.

If renewals fail, COMMAND is asked to stop (SIGTERM to its group) when -grace is left of the lock's validity, and
killed (SIGKILL) when the validity ends: until then nobody else can have the lock. If the lock is found to be lost all at
once, as when somebody has deleted its keys, COMMAND gets SIGTERM then, and SIGKILL after -grace.

The exit status is COMMAND's, 128 + n if signal n ended it, and otherwise
   64  bad usage                             75  the lock is held by another (-try, -wait)
   69  too few masters answered              126 COMMAND can't be started
   73  the lock was lost while COMMAND ran   127 COMMAND does not exist`,
		setup: func(fs *flag.FlagSet) func(context.Context, *terminal, []string) error {
			r := &runner{}
			r.masters.define(fs)
			fs.StringVar(&r.key, "key", "", "`key` of the lock")
			durationVar(fs, &r.ttl, "ttl", 30*time.Second, "`time` after which a lock is free whose holder has died (default 30s)")
			durationVar(fs, &r.wait, "wait", 0, "give up after this `time` (default: wait until the lock is free)")
			fs.BoolVar(&r.try, "try", false, "make one attempt, whatever -wait says")
			durationVar(fs, &r.grace, "grace", 0, "`time` from SIGTERM to SIGKILL when the lock is being lost, at most half the ttl (default: a sixth of it)")
			durationVar(fs, &r.maxHold, "max-hold", 0, "take the lock away from a command that runs for longer than this `time` (default: never)")
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
	lock               *redlock.Lock
	process            *child.Process
	began              time.Time // when the lock was had
	lost               error     // why the command was asked to stop
}

func (r *runner) check(args []string) error {
	switch {
	case len(args) == 0:
		return usage("run: no command")
	case r.key == "":
		return usage("run: no key: give -key, REDLOCK_KEY or a configuration file")
	case r.wait < 0, r.grace < 0, r.maxHold < 0:
		return usage("run: negative time")
	}
	if r.grace == 0 {
		r.grace = r.ttl / graceShare
	}
	if r.grace > r.ttl/2 {
		return usage("run: -grace %v is more than half of -ttl %v: renewals would have no time to be repeated", r.grace, r.ttl)
	}
	return nil
}

func (r *runner) run(ctx context.Context, t *terminal, args []string) error {
	if err := r.check(args); err != nil {
		return err
	}
	locker, disconnect, err := r.masters.locker()
	if err != nil {
		return err
	}
	defer disconnect()
	defer closeSoon(locker)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, child.Forwarded...)
	defer signal.Stop(signals)

	if err := r.acquire(ctx, t, locker, signals); err != nil {
		return err
	}
	r.began = time.Now()
	r.process, err = child.Start(child.Config{
		Argv: args, Env: append(os.Environ(), r.environment()...), Stdin: t.in, Stdout: t.out, Stderr: t.err,
		MayContinue: func() bool { return r.lock.Err() == nil },
	})
	if err != nil {
		status := statusCantRun
		if child.Missing(err) {
			status = statusNotFound
		}
		return &statusError{status, errors.Join(err, r.lock.Release(ctx))}
	}
	r.guard(t, signals)
	return r.finish(ctx)
}

// environment is what the command is told of its lock.
func (r *runner) environment() []string {
	told := []string{"REDLOCK_KEY=" + r.key, "REDLOCK_OWNER=" + r.lock.Owner(), "REDLOCK_TOKEN="}
	if r.fenced {
		told[2] += strconv.FormatUint(r.lock.Token(), 10)
	}
	return told
}

// acquire waits for the lock; a signal ends the wait.
func (r *runner) acquire(ctx context.Context, t *terminal, locker *redlock.Locker, signals <-chan os.Signal) error {
	options := []redlock.Option{redlock.AutoRenew()}
	if r.fenced {
		options = append(options, redlock.Fenced())
	}
	if r.maxHold > 0 {
		options = append(options, redlock.MaxHold(r.maxHold))
	}
	lock, err := locker.TryAcquire(ctx, r.key, r.ttl, options...)
	switch {
	case err == nil:
		r.lock = lock
		return nil
	case r.try || !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrExpired):
		return err
	}
	r.say(t, "waiting: %v", bare{err})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, r.wait)
		defer stop()
	}
	var ended os.Signal
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case ended = <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	r.lock, err = locker.Acquire(ctx, r.key, r.ttl, options...)
	cancel()
	<-watched
	if ended == nil {
		return r.gaveUp(err)
	}
	stopped := fmt.Errorf("%v while waiting for the lock on %q", ended, r.key)
	if err == nil { // the lock and the signal at once: the command is not started any more
		stopped = errors.Join(stopped, r.lock.Release(context.WithoutCancel(ctx)))
	}
	return &statusError{statusSignal + number(ended), stopped}
}

// gaveUp puts the end of -wait into the command's words: what the last attempt met is what the reader needs.
func (r *runner) gaveUp(err error) error {
	var last *redlock.QuorumError
	if errors.Is(err, context.DeadlineExceeded) && errors.As(err, &last) {
		return fmt.Errorf("gave up after %v: %w", r.wait, bare{last})
	}
	return err
}

// guard returns when the command has ended, and sees to it that it does when the lock does.
func (r *runner) guard(t *terminal, signals <-chan os.Signal) {
	over := r.lock.Done()
	timer := time.NewTimer(r.lock.Remaining() - r.grace)
	defer timer.Stop()
	for {
		select {
		case <-r.process.Done():
			return
		case sig := <-signals:
			_ = r.process.Signal(sig) // to a group that may have ended meanwhile
		case <-over:
			over = nil
			if r.lost != nil {
				r.kill(t) // it had its grace while the lock was still valid
				continue
			}
			r.stop(t, r.lock.Err()) // all at once: it has its grace now
			timer.Reset(r.grace)
		case <-timer.C:
			switch left := r.lock.Remaining(); {
			case r.lost != nil:
				r.kill(t)
			case left > r.grace: // it was renewed
				timer.Reset(left - r.grace)
			default:
				r.stop(t, r.ending(left))
				timer.Reset(r.grace)
			}
		}
	}
}

// ending is why there is only so little left: -max-hold, if that is where the validity ends, or renewals that failed.
func (r *runner) ending(left time.Duration) error {
	why := "it was not renewed"
	if r.maxHold > 0 && time.Since(r.began)+left > r.maxHold-r.grace {
		why = fmt.Sprintf("it may be held for %v (-max-hold)", r.maxHold)
	}
	return fmt.Errorf("%s, and ends in %v", why, left.Round(time.Millisecond))
}

func (r *runner) stop(t *terminal, why error) {
	r.lost = why
	r.say(t, "losing the lock on %q: %v; stopping the command", r.key, bare{why})
	_ = r.process.Terminate() // of a group that may have ended meanwhile
}

func (r *runner) kill(t *terminal) {
	r.say(t, "killing the command")
	_ = r.process.Kill()
}

// finish releases the lock and decides the status.
func (r *runner) finish(ctx context.Context) error {
	ended := r.process.Status()
	if r.lost != nil {
		_ = r.process.Kill() // what the command had started and left, which runs without a lock now
	}
	err := r.lock.Release(ctx)
	switch {
	case r.lost != nil && r.quiet:
		return &statusError{statusLost, fmt.Errorf("the lock on %q was lost while the command ran: %w", r.key, bare{r.lost})}
	case r.lost != nil: // stop has said why
		return &statusError{statusLost, fmt.Errorf("the lock on %q was lost while the command ran", r.key)}
	case errors.Is(err, redlock.ErrNotHeld):
		return &statusError{statusLost, fmt.Errorf("the lock on %q was lost before the command had ended: %w", r.key, bare{err})}
	case ended.Signal != 0:
		return silently(statusSignal + ended.Signal)
	default:
		return silently(ended.Code) // that too few masters confirmed is no concern of the command's
	}
}

func (r *runner) say(t *terminal, format string, args ...any) {
	if !r.quiet {
		fmt.Fprintf(t.err, "redlock: "+format+"\n", args...)
	}
}

// closeSoon gives masters that have not confirmed yet a moment; what they keep lapses by its ttl.
func closeSoon(l *redlock.Locker) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = l.Close(ctx) // says which keys lapse, which nobody can do anything about
}

func number(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return int(n)
	}
	return 2
}
