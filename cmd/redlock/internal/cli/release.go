package cli

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// askTimeout limits one request to one master in commands that an operator waits for.
const askTimeout = 2 * time.Second

func releaseCommand() command {
	return command{
		name:    "release",
		args:    "-in FILE | -force KEY",
		summary: "release what redlock acquire took, or take a lock away from its holder",
		help: `
With -in it releases the lock that redlock acquire -out FILE took, and removes FILE. It removes nothing of another
holder. The exit status is 73 if the lock was lost before: then the work may have overlapped with another holder's.

With -force it removes the hold on KEY from every master, whoever holds it. The holder gets no warning and may go on
working for a while: it finds at its next renewal that the lock is lost. Use -force for a holder that is known to be
dead or stuck, if its ttl is too long to wait for.

It shows who holds KEY on each master, and asks before it does anything; -yes answers. It removes only the locks that
it has shown: a lock that is taken later stays. A shared or reentrant lock is removed with all its holds. The fencing
counter stays, so tokens go on growing. It removes no other data: KEY must be a string that could be an owner, of any
library, and has a ttl, or a sorted set of holds.

The exit status is 0 when a quorum of masters has released the lock or has no hold on KEY any more, 1 when FILE does not
exist, the answer was no or KEY is no lock, and otherwise
    64  bad usage
    69  too few masters can be used
    73  the lock of FILE was lost before
    74  FILE could not be removed`,
		setup: func(fs *flag.FlagSet) action {
			r := &releaser{}
			r.masters.define(fs)
			fs.StringVar(&r.in, "in", "", "release the lock in this `file` of redlock acquire -out")
			fs.BoolVar(&r.force, "force", false, "say that you know that this takes the lock from its holder")
			fs.BoolVar(&r.yes, "yes", false, "do not ask")
			return r.run
		},
	}
}

type releaser struct {
	masters    masterFlags
	in         string // a file of redlock acquire
	force, yes bool
}

func (r *releaser) run(ctx context.Context, t *terminal, args []string) error {
	switch {
	case r.in != "" && (r.force || len(args) > 0):
		return usage("release: -in excludes -force and a key")
	case r.in != "":
		return r.releaseStep(ctx, t)
	case len(args) != 1 || args[0] == "":
		return usage("release: want one key after the flags")
	case single.Reserved(args[0]):
		return usage("release: %q is no lock: names that begin with %q are redlock's own", args[0],
			single.ReservedPrefix)
	case !r.force:
		return usage("release: this takes the lock from its holder; say -force if that is what you want, or -in FILE " +
			"for a lock of redlock acquire")
	}
	key := args[0]
	masters, err := r.masters.open()
	if err != nil {
		return err
	}
	defer masters.close()
	seen := askAll(ctx, len(masters.all), askTimeout, func(ctx context.Context, i int) sight {
		return inspectKey(ctx, masters.all[i], key)
	})
	held, unseen := r.show(t, masters, seen)
	if unseen != nil && !r.yes { // the user must not confirm an incomplete list
		return unseen
	}
	for i, s := range seen {
		if s.notLock != "" {
			return exit(statusNo, "%q on %s is no lock but %s: nothing was removed", key, masters.all[i].Name(),
				s.notLock)
		}
	}
	after := seen
	if held > 0 {
		err := t.confirm(r.yes, "release", "Type the key to remove these holds: ", key, "nothing was removed")
		if err != nil {
			return err
		}
		after = removeAll(ctx, masters.all, key, seen)
	}
	return cmp.Or(r.verdict(t, key, masters, seen, after), unseen)
}

// show prints each master's hold and returns the number of masters with one. It returns an error if the output could
// not be written.
func (r *releaser) show(t *terminal, masters *fleet, seen []sight) (held int, err error) {
	rows := make([][]string, len(seen))
	for i, s := range seen {
		what := "free"
		switch {
		case s.err != nil:
			what = "no answer: " + shown(s.err)
		case s.notLock != "":
			what = "no lock: " + s.notLock
		case s.held():
			held++
			what = fmt.Sprintf("held by %s, %s", ownerName(s.reply.Holder), lifetime(s.reply.TTL))
		}
		rows[i] = []string{masters.all[i].Name(), what}
		if masters.joint() {
			rows[i] = []string{masters.all[i].Name(), masters.setsOf(i), what}
		}
	}
	return held, writeWhole(t.out, func(out io.Writer) { writeTable(out, rows) })
}

// removeAll removes exactly the locks in seen, and no later lock: a plain lock by its owner, any other by its holds.
func removeAll(ctx context.Context, masters []*single.Master, key string, seen []sight) []sight {
	return askAll(ctx, len(masters), askTimeout, func(ctx context.Context, i int) sight {
		switch {
		case !seen[i].held():
			return seen[i]
		case len(seen[i].holds) > 0:
			for _, hold := range seen[i].holds {
				if _, err := masters[i].Ask(ctx, hold); err != nil {
					return sight{err: err}
				}
			}
			return sight{}
		}
		reply, err := masters[i].Ask(ctx,
			single.Request{Op: single.Release, Keys: []string{key}, Owner: seen[i].reply.Holder})
		return sight{reply: reply, err: err}
	})
}

// verdict reports the remaining locks, and the failures that show has not printed.
func (r *releaser) verdict(t *terminal, key string, masters *fleet, seen, after []sight) error {
	for i, s := range after {
		if s.err != nil && seen[i].err == nil {
			fmt.Fprintf(t.err, "redlock: %s: %s\n", masters.all[i].Name(), shown(s.err))
		}
	}
	isFree := func(i int) bool { return after[i].err == nil }
	if set := masters.short(isFree); set != nil {
		return exit(statusNoQuorum, "only %s are known to have no hold on %q, where %d decide; run it again when "+
			"the others answer", set.of(set.count(isFree)), key, set.quorum())
	}
	free := masters.counts(isFree, " and ")
	if _, err := fmt.Fprintf(t.out, "%q is free on %s\n", key, free); err != nil {
		return fmt.Errorf("%q is free on %s: %w", key, free, err)
	}
	return nil
}
