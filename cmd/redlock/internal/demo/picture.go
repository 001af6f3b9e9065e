package demo

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

// labelWidth is the width of the labels to the left of the diagram, in characters.
const labelWidth = 30

// picture returns one frame as lines of at most width, as many as fit height. log has the past events.
func picture(v Snapshot, h history, log []string, width, height int, style term.Style) []string {
	if !Fits(width, height, len(v.Masters), len(v.Workers)) {
		return []string{
			fit(fmt.Sprintf("%5.1f s  %d. %s", v.At.Seconds(), v.Act, v.Title), width),
			fit(fmt.Sprintf("acquisitions %d, overlaps %d", v.Acquisitions, v.Overlaps), width),
			fit("(a larger window shows more)", width),
		}
	}
	quorum := redlock.Quorum(v.Members)
	clock := fmt.Sprintf("%5.1f s ", v.At.Seconds())
	title := fit(fmt.Sprintf(" redlock demo: %d workers want one lock, %d masters vote, %d are a quorum",
		len(v.Workers), v.Members, quorum), width-len(clock))
	lines := []string{
		paint(style, bold, title) + strings.Repeat(" ", width-len(clock)-utf8.RuneCountInString(title)) + clock,
		paint(style, bold, fit(fmt.Sprintf(" %d  %s", v.Act, v.Title), width)),
		"",
	}
	lines = append(lines, diagram(v, h.last(width-labelWidth-6), width, style, true)...)
	lines = append(lines, "", " "+totals(v, style), "")
	room, colour := height-len(lines)-1, dim
	log = log[max(0, len(log)-room):]
	if len(v.Refusal) > 0 { // the current problem matters more than the log
		log, colour = v.Refusal[:min(len(v.Refusal), room)], yellow
	}
	for _, line := range log {
		lines = append(lines, paint(style, colour, fit(" "+line, width)))
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines, paint(style, dim, fit(" Ctrl-C ends it and leaves no key behind", width)))
}

// diagram shows the masters and the workers over one time axis that ends now. live adds each worker's present state.
func diagram(v Snapshot, columns []column, width int, style term.Style, live bool) []string {
	up, down, in, out, clash := "─", " ", "█", "·", "X"
	if !style.Unicode {
		up, in, out = "-", "#", "."
	}
	var lines []string
	for i, m := range v.Masters {
		state, colour := "up", green
		if !m.Up {
			state, colour = "stopped", red
		}
		if !live {
			state = ""
		}
		label := fit(fmt.Sprintf(" master %d  %s", i+1, shortName(m.Name)), labelWidth-9)
		lines = append(lines, pad(label, labelWidth-9)+paint(style, colour, pad(fit(state, 8), 9))+
			track(columns, style, func(c column) (string, string) {
				if c.up&(1<<i) != 0 {
					return up, green
				}
				return down, dim
			}))
	}
	lines = append(lines, "")
	for i, w := range v.Workers {
		state, colour := doing(w)
		if !live {
			state = ""
		}
		bar := track(columns, style, func(c column) (string, string) {
			switch {
			case c.inside&(1<<i) == 0:
				return out, dim
			case bits.OnesCount64(c.inside) > 1:
				return clash, red
			case c.both&(1<<i) != 0:
				return jointMark(style), magenta
			default:
				return in, cyan
			}
		})
		free := max(0, width-labelWidth-6-len(columns))
		lines = append(lines, pad(fmt.Sprintf(" worker %d", i+1), 11)+
			paint(style, colour, pad(fit(state, labelWidth-12), labelWidth-11))+
			bar+strings.Repeat(" ", free)+fmt.Sprintf("%5d", w.Acquisitions))
	}
	return lines
}

// doing describes what a worker does now, in at most 18 characters. While masters are exchanged, it also names the
// worker's list.
func doing(w WorkerView) (text, colour string) {
	switch {
	case w.Holds && w.List != "":
		return "holds " + short(w.Left) + ", " + w.List, cyan
	case w.Holds:
		return "holds, " + short(w.Left) + " left", cyan
	case w.List != "":
		return "waits " + short(w.Waiting) + ", " + w.List, dim
	}
	return "waits " + short(w.Waiting), dim
}

// jointMark marks a hold with a quorum of both the old and the new masters.
func jointMark(style term.Style) string {
	if style.Unicode {
		return "▒"
	}
	return "%"
}

// track draws one row; equal neighbours share one colour sequence.
func track(columns []column, style term.Style, cell func(column) (text, colour string)) string {
	var b strings.Builder
	run, colour := "", ""
	for _, c := range columns {
		t, col := cell(c)
		if col != colour {
			b.WriteString(paint(style, colour, run))
			run, colour = "", col
		}
		run += t
	}
	b.WriteString(paint(style, colour, run))
	return b.String()
}

func totals(v Snapshot, style term.Style) string {
	overlaps := paint(style, green, "overlaps 0")
	if v.Overlaps > 0 {
		overlaps = paint(style, red, fmt.Sprintf("OVERLAPS %d", v.Overlaps))
	}
	return fmt.Sprintf("acquired %d   %s   free p50/p99 %s/%s ms   wait p50/p99 %s/%s ms", v.Acquisitions, overlaps,
		millis(v.Free.P50), millis(v.Free.P99), millis(v.Wait.P50), millis(v.Wait.P99))
}

func millis(d Duration) string {
	if time.Duration(d) < 10*time.Millisecond {
		return fmt.Sprintf("%.1f", d.millis())
	}
	return fmt.Sprint(time.Duration(d).Milliseconds())
}

// shortName keeps the end of a long name, because the port is there.
func shortName(name string) string {
	name = strings.TrimPrefix(name, "127.0.0.1")
	if n := labelWidth - 20; len(name) > n {
		name = name[len(name)-n:]
	}
	return name
}

// fit cuts a text without control sequences to width characters.
func fit(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width, 0)])
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
