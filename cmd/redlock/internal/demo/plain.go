package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

// WriteEvent writes an event as a line, for output that is no terminal. It ignores failed writes: the show does not
// depend on its audience.
func WriteEvent(out io.Writer, e Event, style term.Style) {
	text := strings.ReplaceAll(e.Text, "\n", "\n         ")
	switch e.Kind {
	case "act":
		text = paint(style, bold, "== "+text)
	case "step":
		text = paint(style, bold, "-- "+text)
	case "refusal":
		text = paint(style, red, text)
	case "progress":
		text = paint(style, dim, text)
	}
	fmt.Fprintf(out, "%7.2fs %s\n", e.At.Seconds(), text)
}

// WriteReport writes the summary: a table of the acts, and every check.
func WriteReport(out io.Writer, r Report, style term.Style) {
	const row = "  %-28s %8s %7s %7s %7s %7s %7s\n"
	fmt.Fprintln(out)
	fmt.Fprintf(out, row, "", "", "", "free:", "", "wait:", "")
	fmt.Fprintf(out, row, "", "acquired", "refused", "p50", "p99", "p50", "p99")
	for i, a := range r.Acts {
		fmt.Fprintf(out, row, fmt.Sprintf("%d  %s", i+1, a.Title), count(a.Acquisitions), count(a.Refusals),
			spent(a.Free, a.Free.P50), spent(a.Free, a.Free.P99), spent(a.Wait, a.Wait.P50), spent(a.Wait, a.Wait.P99))
	}
	fmt.Fprintf(out, row, "in all", count(r.Acquisitions), "", spent(r.Free, r.Free.P50), spent(r.Free, r.Free.P99),
		spent(r.Wait, r.Wait.P50), spent(r.Wait, r.Wait.P99))
	fmt.Fprintln(out,
		paint(style, dim, "  free: acquiring a lock that no one else wants; wait: until a worker had the common lock"))
	for _, a := range r.Acts {
		if a.Through > 0 {
			fmt.Fprintf(out, "  %s\n",
				paint(style, dim,
					fmt.Sprintf("wait leaves out %d waits through the outage, the longest %v", a.Through, a.Longest)))
		}
	}
	fmt.Fprintln(out)
	for _, c := range r.Checks {
		text := c.What
		if c.Detail != "" {
			text += " (" + c.Detail + ")"
		}
		fmt.Fprintf(out, "  %s %s\n", verdict(style, c.OK), text)
	}
	fmt.Fprintf(out, "\n  acquisitions %d, handoffs %d, overlaps found: %d. %s\n", r.Acquisitions, r.Handoffs,
		r.Overlaps, conclusion(style, r))
}

func verdict(style term.Style, ok bool) string {
	switch {
	case ok && style.Unicode:
		return paint(style, green, "✓")
	case ok:
		return paint(style, green, "ok  ")
	case style.Unicode:
		return paint(style, red, "✗")
	default:
		return paint(style, red, "FAIL")
	}
}

func conclusion(style term.Style, r Report) string {
	switch {
	case r.OK:
		return paint(style, green, fmt.Sprintf("All of it held, in %.1f s.", r.Seconds))
	case r.Interrupted:
		return "Interrupted."
	default:
		return paint(style, red, "NOT all of it held.")
	}
}

func count(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func spent(l Latency, d Duration) string {
	if l.N == 0 {
		return "-"
	}
	return d.String()
}

// The SGR sequences in use: the eight colours that every terminal has.
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

func paint(style term.Style, code, text string) string {
	if !style.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// short renders a duration in at most six characters.
func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
