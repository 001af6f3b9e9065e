package virtual

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// line is a command that a master has performed, for a timeline.
type line struct {
	at     int64
	actors string
	text   string
}

// Timeline runs a schedule again, until it breaks one of the promises judged by the named oracles or has run n times.
// It writes what happened in the last run, one event a line, so that a reader can follow it.
func Timeline(out io.Writer, subject workload.Subject, s *Schedule, oracles []string, n int) (*Result, error) {
	var r *Result
	for range n {
		var err error
		if r, err = run(subject, s, true); err != nil {
			return nil, err
		}
		if r.breaks(oracles) {
			break
		}
	}
	var text strings.Builder
	s.describe(&text)
	for _, l := range r.lines() {
		fmt.Fprintf(&text, "%14s  %-7s  %s\n", history.Stamp(l.at), l.actors, l.text)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&text, "%14s  VIOLATION %s\n", history.Stamp(v.At), v)
	}
	_, err := io.WriteString(out, text.String())
	return r, err
}

func (s *Schedule) describe(b *strings.Builder) {
	fmt.Fprintf(b, "%d masters", len(s.Masters))
	for i, m := range s.Masters {
		if m.PPM != 0 {
			fmt.Fprintf(b, ", m%d's clock %+.2f %%", i, float64(m.PPM)/1e4)
		}
	}
	fmt.Fprintf(b, "; %d clients; messages take %v to %v\n", len(s.Clients), s.MinDelay, s.MaxDelay)
}

// lines are the events of the history and the commands, in the order of their times.
func (r *Result) lines() []line {
	all := slices.Clone(r.trace)
	for i := range r.History {
		e := &r.History[i]
		text := history.Describe(e)
		if text == "" {
			continue
		}
		actors := "all"
		switch {
		case e.Type == history.KeyFound || (e.Type == history.FaultOn || e.Type == history.FaultOff) && e.Master >= 0:
			actors = fmt.Sprintf("m%d", e.Master)
		case e.Client >= 0:
			actors = fmt.Sprintf("c%d", e.Client)
		}
		all = append(all, line{e.At, actors, text})
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	return all
}

// traceLocked adds a line about a command, unless it sets a connection up. The mutex is the world's.
func (w *world) traceLocked(s *session, args []string, reply []byte) {
	if slices.Contains([]string{"HELLO", "CLIENT", "AUTH", "PING", "SELECT"}, strings.ToUpper(args[0])) {
		return
	}
	text := strings.Join(args, " ")
	if len(args) > 1 && strings.HasPrefix(strings.ToUpper(args[0]), "EVAL") {
		text = fmt.Sprintf("script %.6s %s", args[1], strings.Join(args[min(3, len(args)):], " "))
	}
	says := strings.TrimSuffix(strings.ReplaceAll(string(reply), "\r\n", " "), " ")
	w.trace = append(w.trace, line{
		w.now(), fmt.Sprintf("c%d → m%d", s.conn.link.client.number, s.conn.link.master.number),
		fmt.Sprintf("%s: %s", short(text), short(says)),
	})
}

// short is text that fits into a line.
func short(text string) string {
	const most = 90
	text = strings.ReplaceAll(text, "\n", " ")
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
