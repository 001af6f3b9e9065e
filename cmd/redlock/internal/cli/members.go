package cli

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"

	"github.com/seed-624411e5/redlock/single"
)

func membersCommand() command {
	return command{
		name:    "members",
		summary: "show how far an exchange of masters is, and whether its next step is safe",
		help: `
While masters are exchanged, every process goes from the old list (-masters) to both lists (-masters and
-new-masters), and then to the new list. docs/operate/membership.md has the steps. This command shows each master of
both lists with its generation (see -generation), the other clients connected to it, and the locks on it. Then it
shows who uses which masters, as far as connections and locks tell. It says which step is next, and whether it is safe
now, or that these lists are out of date because masters know a later generation. It also says what it can't see. It
changes nothing.

It looks at no more than 20,000 keys of each master, for at most two seconds. If a client seems to use one list alone,
it looks again, up to six times in all, with pauses of three seconds together.

With -announce it tells a quorum of each list that this generation is going to be used, and changes nothing else.
Processes that are two or more generations behind take no lock from then on. Processes without a generation do not
notice. It asks before it does so; -yes answers. If this command says NOT YET, it announces nothing that would stop a
process, unless -force is given.

If it fails because there is no quorum, some masters may know the generation already. To run it again is safe.

The exit status is 0 if the next step can be taken now, 1 if not, or
    64  bad usage
    69  too few masters can be used
    78  masters know a greater generation than the one to announce`,
		setup: func(fs *flag.FlagSet) action {
			m := &members{}
			m.masters.define(fs)
			numberVar(fs, &m.announce, "announce", 1, single.MaxToken, "tell the masters this `generation`")
			fs.BoolVar(&m.force, "force", false, "announce a generation although this says NOT YET")
			fs.BoolVar(&m.yes, "yes", false, "do not ask")
			fs.BoolVar(&m.json, "json", false, "print JSON")
			return m.run
		},
	}
}

type members struct {
	masters   masterFlags
	announce  uint64
	force     bool
	yes, json bool
}

func (m *members) run(ctx context.Context, t *terminal, _ []string) error {
	masters, err := m.masters.openLocker(nil)
	if err != nil {
		return err
	}
	defer masters.close()
	seen := observe(ctx, func() *membership { return lookAtMembers(ctx, masters) })
	if m.announce > 0 {
		if err := m.check(seen); err != nil {
			return err
		}
	}
	report, err := masters.locker.Check(ctx)
	if err != nil {
		return err
	}
	next := seen.next(m.masters.generation, report)
	if m.announce > 0 {
		return m.tell(ctx, t, seen, next)
	}
	switch err := t.print(m.json, seen.document(next), func(out io.Writer) { seen.write(out, next) }); {
	case err != nil:
		return err
	case masters.short(seen.answers) != nil || tooFew(report, masters):
		return silently(statusNoQuorum)
	case !next.Safe:
		return silently(statusNo)
	}
	return nil
}

// check refuses an announcement that would stop every process, and one that would not stop the processes that it
// should.
func (m *members) check(seen *membership) error {
	known, set := seen.greatest(), seen.fleet.short(seen.reads)
	from := cmp.Or(known, m.masters.generation)
	switch {
	case known > m.announce:
		return exit(statusOutdated, "members: masters know generation %d already, which is greater than %d", known,
			m.announce)
	case from == 0 && m.announce > 1 && set != nil:
		return exit(statusNoQuorum, "members: only %s tell which generation they know, and %d are needed to see "+
			"whether -announce %d is one step", set.of(set.count(seen.reads)), set.quorum(), m.announce)
	case from == 0 && m.announce > 1:
		return usage("members: masters know no generation, and no -generation is set: it is not known whether "+
			"-announce %d is one step", m.announce)
	case m.announce > from+1:
		return usage("members: masters know generation %d, and -announce %d would be more than one step: processes "+
			"with generation %d would stop, which may be all of them",
			from, m.announce, m.announce-2)
	case !seen.fleet.joint() && m.announce > 2 && m.announce > known:
		return usage("members: -announce %d with one list of masters: those of the other list have to know it as "+
			"well; give -masters and -new-masters", m.announce)
	}
	return nil
}

// tell announces a generation.
func (m *members) tell(ctx context.Context, t *terminal, seen *membership, next step) error {
	if !next.Safe && m.announce > max(2, m.masters.generation) && !m.force {
		next.write(t.err)
		return exit(statusNo, "members: nothing was announced, since the step is NOT YET safe; -force announces it "+
			"nevertheless")
	}
	err := writeWhole(t.out, func(out io.Writer) {
		fmt.Fprintln(out, m.consequence())
		for _, u := range seen.oldAlone {
			fmt.Fprintf(out, "%s still seems to use the old masters alone\n", u.Who)
		}
	})
	if err != nil {
		return err
	}
	if err := t.confirm(m.yes, "members", "Type the generation to announce it: ",
		strconv.FormatUint(m.announce, 10), "nothing was announced"); err != nil {
		return err
	}
	if err := seen.fleet.locker.Announce(ctx, m.announce); err != nil {
		return fmt.Errorf("%w; some masters may have been told generation %d, which does no harm: run it again", err,
			m.announce)
	}
	return writeWhole(t.out, func(out io.Writer) {
		for _, set := range seen.fleet.sets {
			fmt.Fprintf(out, "at least %s know generation %d\n", set.of(set.quorum()), m.announce)
		}
		if seen.fleet.joint() && m.announce > 2 {
			fmt.Fprintf(out, "now wait for %s; until then no process may have the new masters alone\n", seen.wait(true))
		}
	})
}

// consequence describes the effect of an announcement.
func (m *members) consequence() string {
	if m.announce <= 2 {
		return fmt.Sprintf("This tells masters generation %d. It stops no process.", m.announce)
	}
	return fmt.Sprintf("This tells masters generation %d. Processes with generation %d or less take no lock from "+
		"then on, and lose the locks that they hold; processes without a generation go on.",
		m.announce, m.announce-2)
}
