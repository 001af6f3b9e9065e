package chaos

import (
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Kind is a correct lock that lacks something. The harness must not convict it in any scenario. It skips a scenario
// that needs what the lock lacks.
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
		{"renewal", unrenewed(ownSubject{name: "redlock:no-renewal"}), 0},
		{"fencing", ownSubject{name: "redlock:no-fencing", lacks: []history.Kind{history.Fenced}}, 0},
		{"reentrancy", ownSubject{name: "redlock:no-reentrancy", lacks: []history.Kind{history.Reentrant}}, 0},
		{"waiting", controls.New(controls.Textbook), 0},
		{"a majority", Redlock(), 1},
	}
}

// unrenewed is the subject with all that it has but renewal.
func unrenewed(s ownSubject) workload.Subject {
	return struct {
		workload.Subject
		workload.Secured
		workload.VoteTeller
		workload.Patient
		workload.Several
		workload.OwnerReader
		workload.Members
	}{s, s, s, s, s, s, s}
}
