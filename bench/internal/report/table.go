// Package report shows rows to people: as tables in a terminal and as plots in SVG files.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/seed-624411e5/redlock/bench/internal/result"
)

// Section is the rows of one scenario under its name.
type Section struct {
	Name, About string
	Rows        []result.Row
}

// Sections orders rows by the scenarios given as name and description; scenarios without rows are left out.
func Sections(scenarios [][2]string, rows []result.Row) []Section {
	var out []Section
	for _, s := range scenarios {
		section := Section{Name: s[0], About: s[1]}
		for _, r := range rows {
			if r.Scenario == s[0] {
				section.Rows = append(section.Rows, r)
			}
		}
		if len(section.Rows) > 0 {
			out = append(out, section)
		}
	}
	return out
}

// column is one column of a scenario's table.
type column struct {
	title string
	cell  func(result.Row) string
}

// missing marks a figure without a measurement, so that it never looks like a zero.
const missing = "–"

func number(title, name, format string) column {
	return column{title, func(r result.Row) string {
		v, ok := r.Get(name)
		if !ok {
			return missing
		}
		return fmt.Sprintf(format, v)
	}}
}

func micros(title, name string) column {
	return column{title, func(r result.Row) string {
		v, ok := r.Get(name)
		if !ok {
			return missing
		}
		return Duration(v)
	}}
}

// Duration writes microseconds with three significant digits and the unit that suits them.
func Duration(us float64) string {
	// The bounds are the limits of rounding to three digits: 999.5 µs becomes 1 ms, not 1e+03 µs.
	switch {
	case us >= 999.5e3:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 999.5:
		return fmt.Sprintf("%.3g ms", us/1e3)
	default:
		return fmt.Sprintf("%.3g µs", us)
	}
}

// ratio returns how much more of something a row has than the reference subject under the same conditions.
func ratio(title, name, reference string, all []result.Row) column {
	return column{title, func(r result.Row) string {
		own, ok := r.Get(name)
		if !ok {
			return missing
		}
		for _, other := range all {
			// The limit has no workers: it was measured once and applies to every row.
			same := other.Workers == r.Workers || reference == "limit"
			// Except in the scenario about it, the number of servers differs only because the services differ.
			beside := other.Masters == r.Masters || r.Scenario != "masters"
			if other.Subject == reference && (other.Kind == r.Kind || other.Kind == "") && beside && same {
				if base, ok := other.Get(name); ok && base > 0 {
					return times(own / base)
				}
			}
		}
		return missing
	}}
}

// times writes a ratio. Some ratios are extreme, because a stopped master stops some rivals too.
func times(ratio float64) string {
	if ratio > 0 && ratio < 0.095 || ratio >= 1000 {
		return fmt.Sprintf("%.1e×", ratio)
	}
	return fmt.Sprintf("%.2f×", ratio)
}

var spread = column{"min..max", func(r result.Row) string {
	low, okLow := r.Get("ops_per_s_min")
	high, okHigh := r.Get("ops_per_s_max")
	if !okLow || !okHigh {
		return missing
	}
	return fmt.Sprintf("%.0f..%.0f", low, high)
}}

func columns(s Section) []column {
	cols := []column{
		{"subject", func(r result.Row) string {
			if r.Kind != "" {
				return r.Subject + " (" + r.Kind + ")"
			}
			return r.Subject
		}},
		{"workers", func(r result.Row) string { return fmt.Sprint(r.Workers) }},
		{"masters", func(r result.Row) string { return fmt.Sprint(r.Masters) }},
	}
	switch s.Name {
	case "contended", "distant":
		return append(cols, number("handoffs/s", "ops_per_s", "%.0f"), spread,
			micros("gap p50", "gap_p50_us"), micros("gap p99", "gap_p99_us"),
			micros("third fastest", "quorum_delay_us"),
			number("gap in round trips", "gap_round_trips", "%.2f"), micros("one cycle", "cycle_us"),
			micros("after a rest", "rested_cycle_us"),
			micros("wait p50", "wait_p50_us"), micros("wait p99", "wait_p99_us"), micros("wait max", "wait_max_us"),
			micros("perfect queue", "ideal_wait_us"), number("fairness", "fairness", "%.3f"),
			number("overlaps", "overlaps", "%.0f"), number("errors", "errors", "%.0f"),
			ratio("handoffs ÷ redsync", "ops_per_s", "redsync", s.Rows))
	case "cohort":
		return append(cols, number("handoffs/s", "ops_per_s", "%.0f"), spread,
			micros("one cycle", "cycle_us"),
			micros("wait p50", "p50_us"), micros("wait p99", "p99_us"), micros("wait max", "max_us"),
			number("fairness within", "fairness_within", "%.3f"), number("moves/s", "moves_per_s", "%.1f"),
			micros("away p50", "away_p50_us"), micros("away max", "away_max_us"),
			micros("the window allows", "away_allowed_us"),
			number("fairness", "fairness", "%.3f"), number("overlaps", "overlaps", "%.0f"),
			number("errors", "errors", "%.0f"),
			ratio("÷ redsync", "ops_per_s", "redsync", s.Rows),
			ratio("÷ redsync-mutex", "ops_per_s", "redsync-mutex", s.Rows))
	case "neighbour":
		return append(cols, micros("free p50", "p50_us"), micros("free p99", "p99_us"),
			number("÷ alone", "p99_alone", "%.1f×"), number("÷ apart", "p99_apart", "%.1f×"),
			micros("free max", "max_us"),
			micros("extend p50", "extend_p50_us"), micros("extend p99", "extend_p99_us"),
			number("÷ alone", "extend_p99_alone", "%.1f×"), number("÷ apart", "extend_p99_apart", "%.1f×"),
			number("300 ms ttl used %", "used_0", "%.0f"), number("1 s %", "used_1", "%.0f"),
			number("10 s %", "used_2", "%.0f"),
			number("lost", "lost", "%.0f"), number("failed", "errors", "%.0f"),
			number("failed alone", "alone_failed", "%.0f"), number("failed apart", "apart_failed", "%.0f"),
			number("commands/s", "commands_per_s", "%.0f"))
	case "renewed":
		return append(cols, number("holds", "holds", "%.0f"), number("acquired/s", "ops_per_s", "%.0f"),
			number("heap a hold (B)", "heap_per_hold_bytes", "%.0f"), number("goroutines", "goroutines", "%.0f"),
			number("cores", "cpu_cores", "%.2f"), number("lost", "lost", "%.0f"), number("errors", "errors", "%.0f"))
	}
	cols = append(cols, number("cycles/s", "ops_per_s", "%.0f"), spread,
		micros("p50", "p50_us"), micros("p99", "p99_us"), micros("max", "max_us"))
	switch s.Name {
	case "stopped", "slow":
		cols = append(cols, micros("healthy p50", "healthy_p50_us"), micros("healthy p99", "healthy_p99_us"),
			number("unfinished", "unfinished", "%.0f"))
	case "cost", "sharded":
		return append(cols, number("commands", "commands", "%.2f"), number("bytes in", "bytes_in", "%.0f"),
			number("bytes out", "bytes_out", "%.0f"),
			number("µs a master", "master_cpu_us", "%.2f"), number("µs the client", "client_cpu_us", "%.1f"),
			number("errors", "errors", "%.0f"))
	case "spread":
		cols = append(cols, micros("acquire p50", "acquire_p50_us"), micros("acquire p99", "acquire_p99_us"),
			micros("third fastest", "quorum_delay_us"), micros("its PING", "quorum_ping_us"),
			micros("its PING meanwhile", "busy_ping_us"))
	default:
		cols = append(cols, number("allocs", "allocs_per_op", "%.0f"), number("bytes", "bytes_per_op", "%.0f"))
	}
	cols = append(cols, number("errors", "errors", "%.0f"))
	if s.Name == "kinds" { // compares this library with itself
		return cols
	}
	return append(cols, ratio("p50 ÷ redsync", "p50_us", "redsync", s.Rows),
		ratio("cycles ÷ redsync", "ops_per_s", "redsync", s.Rows),
		ratio("÷ fan-out", "ops_per_s", "goredis-fanout", s.Rows), ratio("÷ limit", "ops_per_s", "limit", s.Rows))
}

// cells are the table of a section, its header first.
func cells(s Section) [][]string {
	cols := columns(s)
	var header []string
	for _, c := range cols {
		header = append(header, c.title)
	}
	table := [][]string{header}
	for _, r := range s.Rows {
		var line []string
		for _, c := range cols {
			line = append(line, c.cell(r))
		}
		table = append(table, line)
	}
	return dropEmpty(table)
}

// dropEmpty removes the columns without a measurement.
func dropEmpty(table [][]string) [][]string {
	out := make([][]string, len(table))
	for col := range table[0] {
		empty := true
		for _, line := range table[1:] {
			empty = empty && line[col] == missing
		}
		if empty {
			continue
		}
		for i, line := range table {
			out[i] = append(out[i], line[col])
		}
	}
	return out
}

// notes describes the subjects that do not use the masters.
func notes(s Section) []string {
	var out []string
	for _, r := range s.Rows {
		if note := r.Subject + ": " + r.About; r.About != "" && !slices.Contains(out, note) {
			out = append(out, note)
		}
	}
	return out
}

// Table writes a section for a terminal.
func Table(w io.Writer, s Section) error {
	fmt.Fprintf(w, "\n%s: %s\n", s.Name, s.About)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range cells(s) {
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, note := range notes(s) {
		fmt.Fprintln(w, "  "+note)
	}
	for _, r := range s.Rows {
		if r.FirstError != nil {
			fmt.Fprintf(w, "  %s, %d workers: %d errors, the first: %v\n", r.Subject, r.Workers, r.Errors, r.FirstError)
		}
	}
	return nil
}
