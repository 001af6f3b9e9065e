package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// writeTable writes rows in columns, two blanks apart; a row may have fewer cells than others. No line ends in blanks.
func writeTable(out io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

// withSets adds a column with the sets of each master to a table with a heading, if there are two sets.
func (f *fleet) withSets(rows [][]string) [][]string {
	if !f.joint() {
		return rows
	}
	for i := range rows {
		set := "SET"
		if i > 0 {
			set = f.setsOf(i - 1)
		}
		rows[i] = slices.Insert(rows[i], 1, set)
	}
	return rows
}

// withGenerations adds a column with the generation of each master that has answered, if any master knows one.
func withGenerations(rows [][]string, told func(i int) uint64) [][]string {
	columns := len(rows[0])
	some := false
	for i := range len(rows) - 1 {
		some = some || told(i) > 0
	}
	if !some {
		return rows
	}
	rows[0] = append(rows[0], "GENERATION")
	for i, row := range rows[1:] {
		if len(row) == columns {
			rows[i+1] = append(rows[i+1], orNone(int(told(i))))
		}
	}
	return rows
}
