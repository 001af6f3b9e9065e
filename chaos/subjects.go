package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Redlock is this library as a subject, with its default options.
func Redlock() workload.Subject { return RedlockWith("redlock", redlock.Options{}) }

// RedlockWith is this library with other options, under the given name.
func RedlockWith(name string, opts redlock.Options) workload.Subject {
	return subject.Redlock{Label: name, Options: opts}
}

// guard is the longest ttl of the scenarios that make masters lose their data.
const guard = 4 * time.Second

// Guarded is this library with a restart guard, for masters that lose their data.
func Guarded() workload.Subject {
	return RedlockWith("redlock:guarded", redlock.Options{RestartGuard: guard})
}

// longGuard is longer than a run can wait for masters that count as having lost their data.
const longGuard = 15 * time.Second

// LongGuarded is this library with a restart guard that is longer than any run. It treats the
// masters as old enough to vote when the run begins. So a master that restarts with its data has to
// be recognised, or it can't vote for the rest of the run.
func LongGuarded() workload.Subject { return longGuarded() }

func longGuarded() subject.Redlock {
	return subject.Redlock{Label: "redlock:long-guarded", Options: redlock.Options{RestartGuard: longGuard}, Aged: true}
}

// Subjects lists the locks that have a name for the command line: this library first, then correct locks
// that lack something, then the broken ones.
func Subjects() []workload.Subject {
	out := []workload.Subject{Redlock(), Guarded(), LongGuarded(), controls.Pooling()}
	add := func(added workload.Subject) {
		if !slices.ContainsFunc(out, func(s workload.Subject) bool { return s.Name() == added.Name() }) {
			out = append(out, added)
		}
	}
	for _, k := range Kinds() {
		add(k.Subject)
	}
	for _, c := range Controls() {
		add(c.Subject)
	}
	return out
}

// FindSubject returns the subject of that name.
func FindSubject(name string) (workload.Subject, error) {
	var names []string
	for _, s := range Subjects() {
		if s.Name() == name {
			return s, nil
		}
		names = append(names, s.Name())
	}
	return nil, fmt.Errorf("chaos: no subject %q; there are %v", name, names)
}

// Kind is a correct lock that lacks something. The harness must not convict it in any scenario. It skips scenarios
// that need the missing ability.
type Kind struct {
	// Lacks names the missing ability.
	Lacks   string
	Subject workload.Subject
	// Masters is how many masters it is for; 0: any number.
	Masters int
}

// Kinds lists such locks.
func Kinds() []Kind {
	return []Kind{
		{"renewal", subject.Unrenewed(subject.Redlock{Label: "redlock:no-renewal"}), 0},
		{"fencing", subject.Redlock{Label: "redlock:no-fencing", Lacks: []history.Kind{history.Fenced}}, 0},
		{"reentrancy", subject.Redlock{Label: "redlock:no-reentrancy", Lacks: []history.Kind{history.Reentrant}}, 0},
		{"waiting", controls.New(controls.Textbook), 0},
		{"a majority", Redlock(), 1},
	}
}
