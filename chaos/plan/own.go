package plan

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/masters"
)

// Target is the step of a caller's fault with its targets.
type Target struct {
	// Step is the step itself, with its numbers.
	Step Step
	// Fleet has the masters of the run, which is the one to close them; Fleet.Reach tells how to dial them, past all
	// proxies.
	Fleet *masters.Fleet
	// Masters and Clients are the numbers of those that the step hits.
	Masters, Clients []int
}

// FindFault returns the fault of that name, one of p.Own or of [Faults]. The error matches ErrUnknownFault.
func (p *Plan) FindFault(name string) (Fault, error) {
	if i := slices.IndexFunc(p.Own, func(f Fault) bool { return f.Name == name }); i >= 0 {
		return p.Own[i], nil
	}
	f, err := FindFault(name)
	if err != nil && len(p.Own) > 0 {
		var names []string
		for i := range p.Own {
			names = append(names, p.Own[i].Name)
		}
		err = fmt.Errorf("%w, and of your own %v", err, names)
	}
	return f, err
}

// nameForm is the valid form of the names of faults and oracles.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// CheckName returns an error if a fault or oracle of a caller's own can't have this name.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("the name is %q, and can have a-z, 0-9 and -, a letter first", name)
	}
	return nil
}

// checkOwn checks faults of a caller's own. Errors name the fault.
func checkOwn(own []Fault) error {
	for i := range own {
		f := &own[i]
		if err := CheckName(f.Name); err != nil {
			return fmt.Errorf("plan: fault %d of your own: %w", i+1, err)
		}
		fail := func(what string) error { return fmt.Errorf("plan: fault %q of your own: %s", f.Name, what) }
		_, taken := FindFault(f.Name)
		switch {
		case taken == nil:
			return fail("there is one of that name already, see Faults")
		case slices.ContainsFunc(own[:i], func(g Fault) bool { return g.Name == f.Name }):
			return fail("there are two of that name")
		case f.Inject == nil:
			return fail("it has no Inject")
		case f.Text == "":
			return fail("it has no Text that describes it")
		case !slices.Contains([]Where{OnMaster, OnNetwork, OnClient, Elsewhere}, f.Where):
			return fail(fmt.Sprintf("Where is %q, and can be %q, %q, %q or %q", f.Where, OnMaster, OnNetwork, OnClient,
				Elsewhere))
		case f.Where != OnMaster && (f.Forgets || f.Leaves == masters.HoldsOnly):
			return fail("only a fault on masters Forgets, or Leaves HoldsOnly")
		case f.Children:
			return fail("Children is for faults of this package")
		}
	}
	return nil
}
