package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

const (
	// histogramWidth is the number of columns of a histogram if the terminal's width is unknown, and the greatest
	// number.
	histogramWidth, histogramMost, histogramLeast = 50, 100, 20
	// labelGap is the least distance between the axis's labels.
	labelGap = 2
)

// The levels of a histogram, from empty to full.
const (
	blockLevels = " ▁▂▃▄▅▆▇█"
	plainLevels = " .:-=+*#@"
)

func (b *bench) print(t *terminal, r *benchmark.Report) error {
	return t.print(b.json, r, func(out io.Writer) {
		fmt.Fprintf(out, "%s\n\n", r.Settings)
		heading := []string{"MEASURE", "N", "P50", "P90", "P99", "P99.9", "LONGEST", "P50 OF ROUNDS", "FAILED"}
		writeTable(out, append([][]string{heading}, r.Cells()...))
		fmt.Fprintln(out)
		writeHistograms(out, t, r)
		writeComparison(out, r.Comparison)
		for _, warning := range r.Warnings() {
			fmt.Fprintf(out, "%s\n", oneLine(warning))
		}
		fmt.Fprintf(out, "%s\n", r.Keys)
	})
}

// writeHistograms writes a line for each measure, over one logarithmic axis. The highest column of a line is its
// fullest.
func writeHistograms(out io.Writer, t *terminal, r *benchmark.Report) {
	axis, ok := benchmark.AxisOf(r.Measures)
	if !ok {
		return
	}
	names := 0
	for _, m := range r.Measures {
		names = max(names, len(m.Name))
	}
	columns := histogramWidth
	if width, _, isTerminal := term.Size(t.out); isTerminal {
		columns = min(max(width-names-4, histogramLeast), histogramMost)
	}
	levels := []rune(plainLevels)
	if term.OwnStyle().Unicode {
		levels = []rune(blockLevels)
	}
	fmt.Fprintf(out, "%-*s  %s\n", names, "", axisLine(axis, columns))
	for _, m := range r.Measures {
		if m.N > 0 {
			fmt.Fprintf(out, "%-*s |%s|\n", names, m.Name, histogramLine(axis.Bins(m, columns), levels))
		}
	}
	fmt.Fprintln(out)
}

// histogramLine draws bins as one line. A bin that is not empty is always visible.
func histogramLine(bins []float64, levels []rune) string {
	most := slices.Max(bins)
	line := make([]rune, len(bins))
	for i, b := range bins {
		level := 0
		if b > 0 {
			level = 1 + int(b/most*float64(len(levels)-2)+0.5)
		}
		line[i] = levels[min(level, len(levels)-1)]
	}
	return string(line)
}

// axisLine writes the labels of an axis. Each begins at the position of its time, as far as there is room.
func axisLine(axis benchmark.Axis, columns int) string {
	line := []rune(strings.Repeat(" ", columns))
	free := 0
	for _, tick := range axis.Ticks() {
		label := []rune(benchmark.Show(tick))
		at := int(axis.At(tick) * float64(columns))
		if at < free || at+len(label) > columns {
			continue
		}
		copy(line[at:], label)
		free = at + len(label) + labelGap
	}
	return strings.TrimRight(string(line), " ")
}

func writeComparison(out io.Writer, c *benchmark.Comparison) {
	if c == nil {
		return
	}
	heading := []string{"MEASURE", "", "OLD", "NEW", "CHANGE", "P", "ROUNDS", "VERDICT"}
	writeTable(out, append([][]string{heading}, c.Cells()...))
	fmt.Fprintln(out)
	for _, note := range c.Notes {
		fmt.Fprintf(out, "differs: %s\n", oneLine(note))
	}
	fmt.Fprintf(out, "%s than %s\n\n", verdictLine(c), strings.Join(c.Old, ", "))
}

// verdictLine is the verdict of all rows.
func verdictLine(c *benchmark.Comparison) string {
	count := 0
	for _, d := range c.Rows {
		if d.Verdict == c.Verdict {
			count++
		}
	}
	switch c.Verdict {
	case benchmark.Slower:
		runs := ""
		if c.Runs > 1 {
			runs = fmt.Sprintf(" in each of %d runs,", c.Runs)
		}
		return fmt.Sprintf("SLOWER in %d of %d rows, by %s or more,%s", count, len(c.Rows), benchmark.ShowPart(c.Worse),
			runs)
	case benchmark.Unknown:
		return fmt.Sprintf("UNKNOWN in %d of %d rows whether it is slower", count, len(c.Rows))
	}
	return fmt.Sprintf("no row is slower, by %s or more,", benchmark.ShowPart(c.Worse))
}
