package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Timeline writes the events of a traced run, one line each, so that a reader can follow it.
func Timeline(out io.Writer, s *Schedule, r *Result) error {
	lines := make([]Line, 0, len(r.History)+len(r.Trace))
	for i := range r.History {
		if line, tells := lineOf(&r.History[i]); tells {
			lines = append(lines, line)
		}
	}
	lines = append(lines, r.Trace...)
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	var b strings.Builder
	s.describe(&b)
	for _, l := range lines {
		fmt.Fprintf(&b, "%14s  %-9s %s\n", history.Stamp(l.At), l.actors(), l.Text)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%14s  VIOLATION %s\n", history.Stamp(v.At), v)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// describe writes the run's input.
func (s *Schedule) describe(b *strings.Builder) {
	fmt.Fprintf(b, "%d masters", len(s.Masters))
	for i, m := range s.Masters {
		if m.PPM != 0 {
			fmt.Fprintf(b, ", m%d's clock %+.2f %%", i, float64(m.PPM)/1e4)
		}
	}
	fmt.Fprintf(b, "; %d clients", len(s.Clients))
	for i, c := range s.Clients {
		if c.PPM != 0 {
			fmt.Fprintf(b, ", c%d's clock %+.2f %%", i, float64(c.PPM)/1e4)
		}
	}
	fmt.Fprintf(b, "; messages take %v to %v\n", s.Net.MinDelay, s.Net.MaxDelay)
	if s.Exchange != nil {
		s.Exchange.describe(b, s.Clients)
	}
}

// actors names the actors of a line: a client, a master, or a message between them.
func (l *Line) actors() string {
	switch {
	case l.Client >= 0 && l.Master >= 0:
		return "c" + strconv.Itoa(l.Client) + " → m" + strconv.Itoa(l.Master)
	case l.Client >= 0:
		return "c" + strconv.Itoa(l.Client)
	case l.Master >= 0:
		return "m" + strconv.Itoa(l.Master)
	default:
		return "all"
	}
}

// lineOf writes an event of the history. It leaves out events that the trace shows better.
func lineOf(e *history.Event) (Line, bool) {
	l := Line{At: e.At, Client: e.Client, Master: none, Text: history.Describe(e)}
	switch e.Type {
	case history.KeyFound:
		l.Client, l.Master = none, e.Master
	case history.FaultOn, history.FaultOff:
		l.Master = e.Master
	}
	return l, l.Text != ""
}
