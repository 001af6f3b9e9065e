package benchmark

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// none marks a figure that does not exist.
const none = "–"

// showCenter formats a median and the distance to the farther end of its interval. With too few values it shows the
// range.
func showCenter(c Center) string {
	switch {
	case c.N == 0:
		return none
	case !c.Known:
		return fmt.Sprintf("%s (%s to %s)", Show(c.Median), Show(c.Low), Show(c.High))
	case c.Median <= 0:
		return Show(c.Median)
	}
	return fmt.Sprintf("%s ±%.0f%%", Show(c.Median), max(c.High-c.Median, c.Median-c.Low)/c.Median*100)
}

// ShowPart formats a fraction that is not a change.
func ShowPart(part float64) string { return fmt.Sprintf("%g%%", part*100) }

// ShowQuantile writes a quantile of a measure.
func (m *Measure) ShowQuantile(name string) string {
	if v, ok := m.get(name); ok {
		return Show(v)
	}
	return none
}

// Cells are the rows of a table of all measures. A row has the name, the number of operations, the quantiles and the
// longest. Then it has the median of the rounds' medians with its interval, and the operations that did not succeed.
func (r *Report) Cells() (rows [][]string) {
	for i := range r.Measures {
		m := &r.Measures[i]
		row := []string{m.Name, strconv.Itoa(m.N)}
		for _, q := range quantiles {
			row = append(row, m.ShowQuantile(q.name))
		}
		longest := none
		if m.N > 0 {
			longest = Show(m.Max)
		}
		medians, _ := m.samples("p50")
		rows = append(rows, append(row, longest, showCenter(center(medians)), m.ShowTrouble()))
	}
	return rows
}

// Cells are the rows of a table of the comparison: the measure, the quantile, both sides, the change, its probability,
// the number of rounds, and the verdict.
func (c *Comparison) Cells() (rows [][]string) {
	for _, d := range c.Rows {
		p, verdict := fmt.Sprintf("%.3f", d.Adjusted), d.Verdict
		if d.Adjusted < 0.001 {
			p = "<0.001"
		}
		if d.Why != "" {
			verdict += ": " + d.Why
		}
		rows = append(rows, []string{
			d.Measure, d.Quantile, showCenter(d.Old), showCenter(d.New), fmt.Sprintf("%+.1f%%", d.Change*100), p,
			fmt.Sprintf("%d+%d", d.Old.N, d.New.N), verdict,
		})
	}
	return rows
}

// ShowTrouble writes how many operations did not succeed.
func (m *Measure) ShowTrouble() string {
	text := strconv.Itoa(m.Failed)
	if m.Unfinished > 0 {
		text += fmt.Sprintf(" and %d unfinished", m.Unfinished)
	}
	return text
}

// String describes the method of measurement in a sentence.
func (s Settings) String() string {
	loop := "closed loop"
	if s.Rate > 0 {
		loop = fmt.Sprintf("open loop at %v a second", s.Rate)
	}
	pace := fmt.Sprintf("at most %d operations a second", s.Ops)
	if s.Ops == 0 {
		pace = "as fast as it goes"
	}
	kind := ""
	if s.Fenced {
		kind = "fenced, "
	}
	return fmt.Sprintf("%d rounds of %v, %s, %d workers, %d contenders, %s, %sttl %v", s.Rounds, seconds(s.Window),
		loop, s.Workers, s.Contenders,
		pace, kind, seconds(s.TTL))
}

// String describes the fate of the keys.
func (k Keys) String() string {
	text := fmt.Sprintf("Up to %d keys were made, which began with %q", k.Made, k.Prefix)
	switch {
	case k.Left > 0:
		text += fmt.Sprintf("; %d ARE LEFT, which could not be removed", k.Left)
	case len(k.Unknown) == 0:
		return text + "; none is left."
	default:
		text += "; none is left on the masters that answer"
	}
	if len(k.Unknown) > 0 {
		text += "; not known is that of " + strings.Join(k.Unknown, ", ") + ", where they lapse by their ttl"
	}
	return text + "."
}

// Warnings lists facts that a reader must know before the times.
func (r *Report) Warnings() (warnings []string) {
	add := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if r.Overlaps > 0 {
		add("TWO CLIENTS HELD THE LOCK AT ONCE, %d times: the lock does not work on these masters", r.Overlaps)
	}
	if r.Interrupted {
		add("interrupted: these are the results up to then")
	}
	for _, m := range r.Masters {
		if !m.Usable {
			add("%s did not answer: the times are for locks on the others", m.Name)
		}
	}
	for i := range r.Measures {
		m := &r.Measures[i]
		switch {
		case m.Error != "":
			add("%s: %s of %d failed, such as: %s", m.Name, m.ShowTrouble(), m.N+m.Failed, m.Error)
		case m.N == 0 && !r.isDown(m.Name):
			add("%s: UNKNOWN, nothing was measured", m.Name)
		}
	}
	return warnings
}

// isDown reports whether a measure is the round trip of a master that did not answer.
func (r *Report) isDown(measure string) bool {
	return slices.ContainsFunc(r.Masters, func(m Master) bool {
		return !m.Usable && measure == roundTrip+" "+m.Name
	})
}
