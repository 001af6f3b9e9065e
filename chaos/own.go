package chaos

import (
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// Oracle is a caller's oracle. It judges a run's history in addition to the oracles of package oracle.
type Oracle struct {
	// Name is the name of its violations, in the report and in JUnit.
	Name string
	// Text describes its findings in a sentence.
	Text string
	// Always makes every finding a violation, in all scenarios. Otherwise a finding is allowed, and
	// listed, in scenarios outside the lock's assumptions.
	Always bool
	// Judge returns the violations; it gets the events in the order of their times. It sets Key, At, Attempts, Events
	// and Text as far as they are known, and Unknown if it could not judge. A panic makes the verdict unknown.
	Judge func(*history.View) []oracle.Violation
}

// checkOwn checks oracles of a caller's own. Errors name the oracle.
func checkOwn(own []Oracle) error {
	for i := range own {
		o := &own[i]
		if err := plan.CheckName(o.Name); err != nil {
			return fmt.Errorf("oracle %d of your own: %w", i+1, err)
		}
		switch {
		case slices.Contains(Oracles(), o.Name):
			return fmt.Errorf("oracle %q of your own: there is one of that name already, see Oracles", o.Name)
		case slices.ContainsFunc(own[:i], func(p Oracle) bool { return p.Name == o.Name }):
			return fmt.Errorf("oracle %q of your own: there are two of that name", o.Name)
		case o.Judge == nil:
			return fmt.Errorf("oracle %q of your own: it has no Judge", o.Name)
		case o.Text == "":
			return fmt.Errorf("oracle %q of your own: it has no Text that describes its findings", o.Name)
		}
	}
	return nil
}

// judge returns the oracle's findings, under its name.
func (o *Oracle) judge(v *history.View) (found []oracle.Violation) {
	defer func() {
		if p := recover(); p != nil {
			found = []oracle.Violation{{Oracle: o.Name, Unknown: true, Text: fmt.Sprintf("it panicked: %v", p)}}
		}
	}()
	found = slices.Clone(o.Judge(v))
	for i := range found {
		found[i].Oracle = o.Name
	}
	return found
}
