package chaos

import (
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/verdict"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// Oracles lists the names of all oracles.
func Oracles() []string { return oracle.Names() }

// Judgement is the oracles' findings in a history.
type Judgement = report.Judgement

// Check judges a history recorded by this package or by another program. The fields of its events
// must follow [history.Event]. The events may come in any order. inside says that all faults were
// within the lock's assumptions. The limits' defaults are for the longest ttl in the history. Check
// returns an error if the history can't be judged because it contradicts itself.
func Check(events []history.Event, l Limits, inside bool) (*Judgement, error) {
	return verdict.Check(events, l, inside)
}
