package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/audit"
)

// step is the next step of an exchange.
type step struct {
	// Name is "joint", "announce" or "new"; "outdated" if other lists are in use.
	Name string `json:"step"`
	// Safe reports whether it can be taken now.
	Safe bool     `json:"safe"`
	Do   string   `json:"do"`
	Not  []string `json:"not_yet,omitempty"` // why it is not safe
	// Unseen lists further facts that the operator must know, and that the command can't see.
	Unseen []string `json:"unseen,omitempty"`
}

// next returns the next step for a user with the configuration of this generation, and whether it can be taken now.
func (s *membership) next(own uint64, report *audit.Report) step {
	var n step
	switch outdated := s.outdated(own); {
	case outdated != "":
		n = step{
			Name: "outdated", Do: "Look again with the lists that are in use: these are out of date.",
			Not: []string{outdated},
		}
	case s.fleet.joint():
		n = s.nextOfTwo(own)
	default:
		n = s.nextOfOne(own)
	}
	n.Not = append(n.Not, s.blocking(own, report)...)
	n.Safe = len(n.Not) == 0
	return n
}

// outdated returns a message if masters know a generation that belongs to later lists than these; otherwise "". While
// two lists are in use, the generation after theirs is announced, so that one does not count.
func (s *membership) outdated(own uint64) string {
	known, latest := s.greatest(), own
	if s.fleet.joint() {
		latest++
	}
	if own == 0 || known <= latest {
		return ""
	}
	return fmt.Sprintf("generation %d is in use, and these lists are of generation %d; they do not show which step "+
		"is next", known, own)
}

func (s *membership) nextOfOne(own uint64) step {
	n := step{
		Name: "joint", Do: "To exchange masters, give every process the masters that are to be used in addition: " +
			"new-masters = …",
	}
	const alike = "looks like a process with this list alone, so this command can't see whether there is one."
	switch {
	case own == 0:
		n.Unseen = []string{"A process that still has both lists of an earlier exchange " + alike +
			" It has to have ended before the next one."}
	case own > 1:
		n.Unseen = []string{fmt.Sprintf("A process of generation %d, with both lists of the exchange before, %s "+
			"Generation %d stops it, and it loses its locks.",
			own-1, alike, own+1)}
	}
	if own > 0 {
		n.Do += fmt.Sprintf(", and generation = %d", own+1)
	}
	return n
}

// nextOfTwo is the step while masters are exchanged.
func (s *membership) nextOfTwo(own uint64) (n step) {
	switch wait := s.wait(own > 0); {
	case len(s.oldAlone) > 0:
		n = step{Name: "joint", Do: "Give every process both lists, as here."}
		for _, u := range s.oldAlone {
			n.Not = append(n.Not, u.Who+" seems to use the old masters alone: the step after this one has to wait for "+
				"it")
		}
	case own > 0 && s.known() < own:
		n = step{Name: "joint", Do: "Give every process both lists, as here.", Not: []string{
			fmt.Sprintf("no quorum of each list knows generation %d yet, so no process with that number has taken "+
				"a lock", own),
		}}
	case own > 0 && s.known() == own:
		n = step{
			Name: "announce",
			Do: fmt.Sprintf("When no process with the old masters alone is left: redlock members -announce %d, "+
				"then wait for %s.", own+1, wait) + s.untold(),
		}
	case own > 0:
		n = step{
			Name: "new",
			Do: fmt.Sprintf("When %s have passed since generation %d was announced, give every process the new "+
				"masters alone: masters = the new list, generation = %d.", wait, own+1, own+1),
		}
	default:
		n = step{
			Name: "new",
			Do: fmt.Sprintf("When the last process with the old masters alone has ended, wait for %s. Then give "+
				"every process the new masters alone.", wait) + s.untold(),
		}
	}
	if own > 0 && s.known() <= own {
		for _, u := range s.newAlone {
			n.Not = append(n.Not, u.Who+" seems to use the new masters alone, which is the last step: a process "+
				"with the old ones alone can hold the same lock")
		}
	}
	return n
}

// untold explains why the command can't see users of the old masters alone; "" if it can.
func (s *membership) untold() string {
	if slices.ContainsFunc(s.apart(1, 0), func(i int) bool { return s.members[i].clients != nil }) {
		return ""
	}
	return " Users of the old masters alone can't be seen here: no master that is in the new list alone lists its " +
		"clients."
}

// blocking lists faults that must be repaired before any step.
func (s *membership) blocking(own uint64, report *audit.Report) []string {
	var why []string
	if set := s.fleet.short(s.answers); set != nil {
		why = append(why,
			fmt.Sprintf("only %s can be used, and %d are needed", set.of(set.count(s.answers)), set.quorum()))
	} else if set := s.fleet.short(s.reads); set != nil {
		why = append(why, fmt.Sprintf("only %s tell their generation, and %d are needed: it is not known whether "+
			"these are the lists in use", set.of(set.count(s.reads)), set.quorum()))
	}
	for _, f := range together(report.Findings) {
		if f.Severity >= audit.Risk && !s.isDown(f.Master) {
			why = append(why, fmt.Sprintf("%s: %s: %s", f.Severity, cmp.Or(f.Master, "the set of masters"),
				oneLine(hidePasswords(f.What))))
		}
	}
	if known := s.greatest(); own == 0 && known > 0 {
		why = append(why,
			fmt.Sprintf("masters know generation %d, and no -generation is given: it is not known whether these are "+
				"the lists in use", known))
	}
	return why
}
