// Package oracle judges histories. Each oracle is a pure function from a history to the violations it finds; none
// looks at a clock, a server or the code that was run, so that the simulator and the chaos harness share them.
//
// The comment of each oracle says which events it needs. An oracle finds nothing in a history that lacks these events.
// Its caller must make sure that they are there (see [PlannedFaults] for faults), or the verdict is empty.
package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// The names of the oracles, as they appear in Violation.Oracle.
const (
	NameOverlap        = "overlap"
	NameDoneAfterBound = "done-after-bound"
	NameForeignRelease = "foreign-release"
	NameOrphan         = "orphan"
	NameLiveness       = "liveness"
	NameAvailability   = "availability"
	NameRecovery       = "recovery"
	NameContinuity     = "extension-continuity"
	NameTokenOrder     = "token-order"
	NameRegister       = "fenced-register"
	NameFaults         = "planned-faults"
	NameKept           = "kept"
	NameVictims        = "victims"
)

// Violation is one broken promise.
type Violation struct {
	// Oracle is the name of the oracle that found it.
	Oracle string `json:"oracle"`
	Key    string `json:"key,omitempty"`
	// At is the reference time in nanoseconds when the violation began.
	At int64 `json:"at"`
	// Attempts are the numbers of the attempts concerned.
	Attempts []uint64 `json:"attempts,omitempty"`
	// Events index the events of the history that show it.
	Events []int `json:"events,omitempty"`
	// Unknown marks a judgement that could not be reached in time. It is a failure of the run, not of the lock.
	Unknown bool `json:"unknown,omitempty"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// String is the oracle's name and the sentence.
func (v Violation) String() string { return v.Oracle + ": " + v.Text }

// NamesOf returns the names of the oracles that have found these violations, each once.
func NamesOf(found []Violation) (names []string) {
	for _, v := range found {
		if !slices.Contains(names, v.Oracle) {
			names = append(names, v.Oracle)
		}
	}
	return names
}

// Safety runs the oracles that need no tuning for any run: overlap, extension continuity, foreign release and token
// order. A history without their violations, and with every Done in time (DoneAfterBound), is safe.
func Safety(v *history.View) []Violation {
	return slices.Concat(Overlap(v), ExtensionContinuity(v), ForeignRelease(v), TokenOrder(v))
}

// holder names a hold for a sentence.
func holder(a *history.Attempt) string {
	s := fmt.Sprintf("client %d (attempt %d", a.Client, a.ID)
	if a.Kind != history.Plain {
		s += ", " + a.Kind.String()
	}
	if a.Owner != "" {
		s += ", owner " + short(a.Owner)
	}
	return s + ")"
}

func short(owner string) string {
	if len(owner) > 10 {
		return owner[:8] + "…"
	}
	return owner
}

// at writes a reference time for a sentence.
func at(ns int64) string {
	if ns == history.Never {
		return "never"
	}
	return time.Duration(ns).Round(time.Microsecond).String()
}

func took(ns int64) string { return time.Duration(ns).Round(time.Microsecond).String() }
