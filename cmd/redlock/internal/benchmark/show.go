package benchmark

import (
	"fmt"
	"strconv"
	"strings"
)

// None marks a figure that does not exist.
const None = "–"

// ShowCenter formats a median and the distance to the farther end of its interval. With too few values it shows the
// range.
func ShowCenter(c Center) string {
	switch {
	case c.N == 0:
		return None
	case !c.Known:
		return fmt.Sprintf("%s (%s to %s)", Show(c.Median), Show(c.Low), Show(c.High))
	case c.Median <= 0:
		return Show(c.Median)
	}
	return fmt.Sprintf("%s ±%.0f%%", Show(c.Median), max(c.High-c.Median, c.Median-c.Low)/c.Median*100)
}

// ShowPercent formats a fraction as a percentage.
func ShowPercent(part float64) string { return fmt.Sprintf("%+.1f%%", part*100) }

// ShowPart formats a fraction that is not a change.
func ShowPart(part float64) string { return fmt.Sprintf("%g%%", part*100) }

// ShowP writes a probability.
func ShowP(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

// ShowQuantile writes a quantile of a measure.
func (m *Measure) ShowQuantile(name string) string {
	if v, ok := m.get(name); ok {
		return Show(v)
	}
	return None
}

// shownQuantiles are all quantiles.
func (m *Measure) shownQuantiles() (shown []string) {
	for _, q := range quantiles {
		shown = append(shown, m.ShowQuantile(q.name))
	}
	return shown
}

// ShowRounds writes the median of the rounds' medians with its interval.
func (m *Measure) ShowRounds() string {
	values, _ := m.samples("p50")
	return ShowCenter(center(values))
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
	for _, m := range r.Masters {
		if !m.Usable && measure == roundTrip+" "+m.Name {
			return true
		}
	}
	return false
}
