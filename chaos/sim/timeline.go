package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

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
		fmt.Fprintf(&b, "%14s  %-9s %s\n", stamp(l.At), l.actors(), l.Text)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%14s  VIOLATION %s\n", stamp(v.At), v)
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
	l := Line{At: e.At, Client: e.Client, Master: none}
	wanted := ""
	if e.Wait > 0 {
		wanted = fmt.Sprintf(", waits up to %v", time.Duration(e.Wait))
	}
	switch e.Type {
	case history.AcquireCall:
		l.Text = fmt.Sprintf("#%d wants %s for %v%s", e.Attempt, e.Key, time.Duration(e.TTL), wanted)
	case history.AcquireReturn:
		l.Text = fmt.Sprintf("#%d gets nothing: %s", e.Attempt, e.Outcome)
		if e.Outcome == history.Acquired {
			l.Text = fmt.Sprintf("#%d HOLDS it as %s until %s", e.Attempt, e.Owner, stamp(e.Until))
			if e.Token > 0 {
				l.Text += fmt.Sprintf(" with token %d", e.Token)
			}
		}
	case history.ExtendCall:
		l.Text = fmt.Sprintf("#%d extends by %v", e.Attempt, time.Duration(e.TTL))
	case history.ExtendReturn:
		l.Text = fmt.Sprintf("#%d is not extended: %s", e.Attempt, e.Outcome)
		if e.Outcome == history.Acquired {
			l.Text = fmt.Sprintf("#%d is extended, HOLDS until %s", e.Attempt, stamp(e.Until))
		}
	case history.ReleaseCall:
		l.Text = fmt.Sprintf("#%d releases", e.Attempt)
	case history.ReleaseReturn:
		l.Text = fmt.Sprintf("#%d release: %s", e.Attempt, releaseWords(e.Outcome))
	case history.DoneClosed:
		l.Text = fmt.Sprintf("#%d is over: Done closes", e.Attempt)
	case history.Stopped:
		l.Text = fmt.Sprintf("#%d stops: %s", e.Attempt, e.Note)
	case history.Paused:
		l.Text = "stands still"
	case history.Resumed:
		l.Text = "goes on"
	case history.KeyFound:
		l.Client, l.Master = none, e.Master
		l.Text = fmt.Sprintf("still has %s for %s, for another %v", e.Key, e.Owner, time.Duration(e.Value))
	case history.FaultOn, history.FaultOff:
		l.Master = e.Master
		l.Text = strings.TrimSpace(strings.ToUpper(e.Name) + " " + e.Note)
		if e.Type == history.FaultOff {
			l.Text = e.Name + " is over"
		}
	case history.Healed:
		l.Text = "all faults are over"
	default:
		return l, false
	}
	return l, true
}

func releaseWords(o history.Outcome) string {
	if o == history.Acquired {
		return "confirmed"
	}
	return o.String()
}
