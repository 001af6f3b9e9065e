// Package target compares measured rows with this library's promises about its speed. All targets are ratios within one
// run, or numbers that do not depend on the machine, because absolute times of one machine mean nothing on another. The
// one exception are the handoffs of the scenario cohort, which need no message and no server.
package target

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/seed-624411e5/redlock/bench/internal/result"
)

// Verdict is the result of a target. The zero value is not a success.
type Verdict uint8

// The verdicts.
const (
	// Unmeasured: the rows that it needs are not there.
	Unmeasured Verdict = iota
	// Missed: worse than the bound.
	Missed
	// Met: the bound, but not the goal.
	Met
	// Goal: the goal is reached.
	Goal
)

func (v Verdict) String() string {
	return [...]string{"not measured", "MISSED", "met", "met, goal reached"}[v]
}

// Target is one promise.
type Target struct {
	// Scenario is where its rows come from.
	Scenario string
	// What names the two compared figures, for the reader.
	What string
	// AtLeast is the bound, Goal is the aim beyond it.
	AtLeast, Goal float64
	// Floor reports whether greater is better; otherwise smaller is.
	Floor bool
	value value
}

// value takes a number from the rows of a scenario; false when they are not there.
type value func(rows []result.Row) (float64, bool)

// Outcome is a Target and its measured value.
type Outcome struct {
	Target
	Value   float64
	Verdict Verdict
}

// Evaluate looks all targets up in the rows.
func Evaluate(measured []result.Row) []Outcome {
	var out []Outcome
	for _, t := range targets() {
		o := Outcome{Target: t}
		own := slices.DeleteFunc(slices.Clone(measured), func(r result.Row) bool { return r.Scenario != t.Scenario })
		if v, ok := t.value(own); ok {
			o.Value, o.Verdict = v, t.judge(v)
		}
		out = append(out, o)
	}
	return out
}

func (t Target) judge(v float64) Verdict {
	reaches := func(bound float64) bool { return v <= bound }
	if t.Floor {
		reaches = func(bound float64) bool { return v >= bound }
	}
	switch {
	case reaches(t.Goal) && reaches(t.AtLeast):
		return Goal
	case reaches(t.AtLeast):
		return Met
	default:
		return Missed // also for NaN, which reaches nothing
	}
}

// Failed reports whether a run of these scenarios has missed a target. A target also counts as missed if its scenario
// ran and left no rows. If limitMeasured is false, comparisons with the machine's limit do not count, because
// redis-benchmark is not installed everywhere.
func Failed(outcomes []Outcome, ran map[string]bool, limitMeasured bool) bool {
	for _, o := range outcomes {
		if o.Verdict == Missed || o.Verdict == Unmeasured && ran[o.Scenario] &&
			(limitMeasured || o.What != againstLimit) {
			return true
		}
	}
	return false
}

// Write prints a line with both numbers for every target of the scenarios that ran, and the number of other targets.
func Write(w io.Writer, outcomes []Outcome, ran map[string]bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "scenario\ttarget\tmeasured\tat least\tgoal\tverdict")
	others := 0
	for _, o := range outcomes {
		if !ran[o.Scenario] {
			others++
			continue
		}
		sign, value := "≤", "–"
		if o.Floor {
			sign = "≥"
		}
		if o.Verdict != Unmeasured {
			value = fmt.Sprintf("%.4g", o.Value)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s %g\t%s %g\t%s\n", o.Scenario, o.What, value, sign, o.AtLeast, sign, o.Goal,
			o.Verdict)
	}
	if others > 0 {
		fmt.Fprintf(tw, "(%d targets belong to scenarios that did not run)\n", others)
	}
	return tw.Flush()
}
