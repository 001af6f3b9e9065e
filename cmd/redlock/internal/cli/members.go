package cli

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

func membersCommand() command {
	return command{
		name:    "members",
		summary: "show how far an exchange of masters is, and whether its next step is safe",
		help: `
While masters are exchanged, every process goes from the old list (-masters) to both lists (-masters and -new-masters), and then
to the new one: docs/membership.md has the steps. This shows each master of both lists with its generation (see -generation),
the other clients that are connected to it, and the locks on it; then who uses which of the masters, as far as connections
and locks tell; and says which step is next, and whether it is safe to take it now. It changes nothing.

It reads at most 20,000 keys of each master, for at most two seconds.

With -announce it tells a quorum of each list that the generation of that number is going to be used, and changes nothing
else. Processes that are two or more behind take no lock from then on; those without
a generation do not notice. It asks before it does so; -yes answers.

The exit status is 0 if the next step can be taken now, 1 if not, and otherwise
   64  bad usage                             69  too few masters answered
   78  masters know a greater generation than the one that was to be announced`,
		setup: func(fs *flag.FlagSet) func(context.Context, *terminal, []string) error {
			m := &members{}
			m.masters.define(fs)
			fs.Uint64Var(&m.announce, "announce", 0, "tell the masters this `generation`")
			fs.BoolVar(&m.yes, "yes", false, "do not ask")
			fs.BoolVar(&m.json, "json", false, "print JSON")
			return m.run
		},
	}
}

type members struct {
	masters   masterFlags
	announce  uint64
	yes, json bool
}

func (m *members) run(ctx context.Context, t *terminal, args []string) error {
	if len(args) > 0 {
		return unexpected("members")
	}
	locker, masters, err := m.masters.locker(nil)
	if err != nil {
		return err
	}
	defer masters.close()
	defer closeSoon(locker, confirmedTimeout)
	seen := observeMembers(ctx, masters)
	if m.announce > 0 {
		return m.tell(ctx, t, locker, seen)
	}
	report, err := locker.Check(ctx)
	if err != nil {
		return err
	}
	next := seen.next(m.masters.generation, report)
	if m.json {
		err = writeJSON(t.out, seen.document(next))
	} else {
		err = seen.write(t.out, next)
	}
	switch {
	case err != nil:
		return err
	case seen.unreached() != nil:
		return silently(statusNoQuorum)
	case !next.Safe:
		return silently(statusNo)
	}
	return nil
}

// check refuses what would stop everybody, and what would not stop those that it is meant for.
func (m *members) check(seen *membership) error {
	known := seen.greatest()
	from := known
	if from == 0 {
		from = m.masters.generation
	}
	switch {
	case known > m.announce:
		return &statusError{status: statusOutdated, err: fmt.Errorf("members: masters know generation %d already, which is greater than %d", known, m.announce)}
	case from == 0 && m.announce > 1:
		return usage("members: masters know no generation, and no -generation is set: nobody can tell whether -announce %d is one step", m.announce)
	case m.announce > from+1:
		return usage("members: masters know generation %d, and -announce %d would be more than one step: processes with generation %d would stop, which may be all of them",
			from, m.announce, m.announce-2)
	case !seen.fleet.joint() && m.announce > 2 && m.announce > known:
		return usage("members: -announce %d with one list of masters: those of the other list have to know it as well; give -masters and -new-masters", m.announce)
	}
	return nil
}

// tell announces a generation.
func (m *members) tell(ctx context.Context, t *terminal, locker *redlock.Locker, seen *membership) error {
	if err := m.check(seen); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(t.out, m.consequence()); err != nil {
		return err
	}
	for _, who := range seen.oldAlone {
		if _, err := fmt.Fprintf(t.out, "%s still seems to use the old masters alone\n", who); err != nil {
			return err
		}
	}
	if err := m.confirm(t); err != nil {
		return err
	}
	if err := locker.Announce(ctx, m.announce); err != nil {
		return err
	}
	for _, set := range seen.fleet.sets {
		if _, err := fmt.Fprintf(t.out, "at least %s know generation %d\n", set.of(set.quorum()), m.announce); err != nil {
			return err
		}
	}
	if !seen.fleet.joint() || m.announce <= 2 {
		return nil
	}
	_, err := fmt.Fprintf(t.out, "now wait for %s; until then no process may have the new masters alone\n", seen.wait(true))
	return err
}

// consequence is what an announcement does.
func (m *members) consequence() string {
	if m.announce <= 2 {
		return fmt.Sprintf("This tells masters generation %d. No process is kept from anything by that.", m.announce)
	}
	return fmt.Sprintf("This tells masters generation %d. Processes with generation %d or less take no lock from then on, and lose what they hold; those without a generation go on.",
		m.announce, m.announce-2)
}

// confirm asks for the number. Without a terminal there is nobody to ask.
func (m *members) confirm(t *terminal) error {
	if m.yes {
		return nil
	}
	if _, _, ok := term.Size(t.in); !ok {
		return usage("members: standard input is no terminal to ask at; -yes answers for you")
	}
	if _, err := fmt.Fprint(t.out, "Type the generation to announce it: "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(t.in).ReadString('\n')
	if strings.TrimSpace(answer) != strconv.FormatUint(m.announce, 10) {
		return &statusError{status: statusNo, err: also(errors.New("not confirmed, nothing was announced"), err)}
	}
	return nil
}

// step is the next one of an exchange.
type step struct {
	// Name is "joint", "announce" or "new".
	Name string `json:"step"`
	// Safe says that it can be taken now.
	Safe bool     `json:"safe"`
	Do   string   `json:"do"`
	Not  []string `json:"not_yet,omitempty"` // why it is not safe
}

// next says which step comes next and whether it can be taken, to who has the configuration of this generation.
func (s *membership) next(own uint64, report *audit.Report) step {
	n := step{Name: "joint", Do: "To exchange masters, give every process the masters that are to be used in addition: new-masters = …"}
	if own > 0 {
		n.Do += fmt.Sprintf(", and generation = %d", own+1)
	}
	switch wait := s.wait(own > 0); {
	case !s.fleet.joint():
	case len(s.oldAlone) > 0:
		n = step{Name: "joint", Do: "Give every process both lists, as here."}
		for _, who := range s.oldAlone {
			n.Not = append(n.Not, fmt.Sprintf("%s seems to use the old masters alone: the step after this one has to wait for it", who))
		}
	case own > 0 && s.known() < own:
		n = step{Name: "joint", Do: "Give every process both lists, as here.", Not: []string{
			fmt.Sprintf("no quorum of each list knows generation %d yet, so no process with that number has taken a lock", own),
		}}
	case own > 0 && s.known() == own:
		n = step{Name: "announce", Do: fmt.Sprintf("When no process with the old masters alone is left: redlock members -announce %d, then wait for %s.", own+1, wait) + s.untold()}
	case own > 0:
		n = step{Name: "new", Do: fmt.Sprintf("When %s have passed since generation %d was announced, give every process the new masters alone: masters = the new list, generation = %d.", wait, own+1, own+1)}
	default:
		n = step{Name: "new", Do: fmt.Sprintf("When the last process with the old masters alone has ended, wait for %s. Then give every process the new masters alone.", wait) + s.untold()}
	}
	if s.fleet.joint() && own > 0 && s.known() <= own {
		for _, who := range s.newAlone {
			n.Not = append(n.Not, fmt.Sprintf("%s seems to use the new masters alone, which is the last step: a process with the old ones alone can hold the same lock", who))
		}
	}
	n.Not = append(n.Not, s.blocking(own, report)...)
	n.Safe = len(n.Not) == 0
	return n
}

// untold says where nobody can be told to use the old masters alone.
func (s *membership) untold() string {
	if len(s.apart(1, 0)) > 0 {
		return ""
	}
	return " Who uses the old masters alone can't be seen here: no master answers that is in the new list alone."
}

// blocking is what has to be mended before any step.
func (s *membership) blocking(own uint64, report *audit.Report) []string {
	var why []string
	if set := s.unreached(); set != nil {
		why = append(why, fmt.Sprintf("only %s answer, and %d are needed", set.of(set.count(s.answers)), set.quorum()))
	}
	for _, f := range together(report.Findings) {
		if f.Severity >= audit.Risk && !s.isDown(f.Master) {
			about := f.Master
			if about == "" {
				about = "the set of masters"
			}
			why = append(why, fmt.Sprintf("%s: %s: %s", f.Severity, about, oneLine(hidePasswords(f.What))))
		}
	}
	if known := s.greatest(); own > 0 && known > own+1 {
		why = append(why, fmt.Sprintf("masters know generation %d, and -generation %d is two or more behind", known, own))
	}
	return why
}
