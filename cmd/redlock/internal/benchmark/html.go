package benchmark

import (
	"fmt"
	"slices"
	"strings"
)

// The chart's measures, in the chart's pixels.
const (
	chartWidth, chartLabels = 1000, 250
	rowHeight, rowGap       = 46, 12
	chartTop, chartBins     = 24, 150
)

// chart is one picture: the histograms of all measures below each other, over one axis.
type chart struct {
	Width, Height, Bottom int
	Ticks                 []tick
	Rows                  []chartRow
	Old                   bool
}

type tick struct {
	X     string
	Label string
}

type chartRow struct {
	Name      string
	TextY     int
	Bars, Old string // paths
	Marks     []mark
}

type mark struct {
	X      string
	Y1, Y2 int
	Tail   bool
}

func classOf(verdict string) string {
	switch verdict {
	case Slower:
		return "bad"
	case Unknown:
		return "warn"
	case Faster:
		return "good"
	}
	return ""
}

// drawn returns the chart of a report together with the old reports.
func drawn(r *Report, old []*Report) chart {
	all := slices.Clone(r.Measures)
	var before []Measure
	if len(old) > 0 {
		before = merged(old)
		all = append(all, before...)
	}
	axis, ok := AxisOf(all)
	if !ok {
		return chart{}
	}
	c := chart{Width: chartWidth, Old: before != nil}
	x := func(at float64) float64 { return chartLabels + at*(chartWidth-chartLabels-20) }
	for i, m := range r.Measures {
		base := chartTop + (i+1)*(rowHeight+rowGap)
		row := chartRow{Name: m.Name, TextY: base - 6, Bars: bars(axis.Bins(m, chartBins), x, base)}
		if before != nil {
			row.Old = outline(axis.Bins(before[i], chartBins), x, base)
		}
		for _, q := range []string{"p50", "p99"} {
			if v, ok := m.get(q); ok {
				row.Marks = append(row.Marks,
					mark{X: pixel(x(axis.At(v))), Y1: base - rowHeight, Y2: base, Tail: q != "p50"})
			}
		}
		c.Rows = append(c.Rows, row)
	}
	c.Bottom = chartTop + len(r.Measures)*(rowHeight+rowGap)
	c.Height = c.Bottom + 6
	c.Ticks = axis.shownTicks(x)
	return c
}

// leastBetween is the least distance between the labels of ticks.
const leastBetween = 48

func (a Axis) shownTicks(x func(float64) float64) (ticks []tick) {
	last := -1000.0
	for _, v := range a.Ticks() {
		t := tick{X: pixel(x(a.At(v)))}
		if at := x(a.At(v)); at-last >= leastBetween {
			t.Label, last = Show(v), at
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// merged returns the histograms of several reports together.
func merged(reports []*Report) []Measure {
	measures := slices.Clone(reports[0].Measures)
	for i := range measures {
		for _, more := range reports[1:] {
			measures[i].Buckets = slices.Concat(measures[i].Buckets, more.Measures[i].Buckets)
			measures[i].Max = max(measures[i].Max, more.Measures[i].Max)
		}
		slices.SortFunc(measures[i].Buckets, func(a, b Bucket) int {
			if a.From < b.From {
				return -1
			}
			return 1
		})
	}
	return measures
}

// bars returns a path with a bar for each bin. A bin that is not empty is visible, however small it is.
func bars(bins []float64, x func(float64) float64, base int) string {
	most, n := slices.Max(bins), float64(len(bins))
	var path strings.Builder
	for i, b := range bins {
		if b <= 0 {
			continue
		}
		height := max(b/most*rowHeight, 0.8)
		left, right := x(float64(i)/n), x(float64(i+1)/n)
		fmt.Fprintf(&path, "M%s %dV%sH%sV%dZ", pixel(left), base, pixel(float64(base)-height), pixel(right), base)
	}
	return path.String()
}

// outline returns the line over the bars.
func outline(bins []float64, x func(float64) float64, base int) string {
	most, n := slices.Max(bins), float64(len(bins))
	if most == 0 {
		return ""
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%s %d", pixel(x(0)), base)
	for i, b := range bins {
		fmt.Fprintf(&path, "V%sH%s", pixel(float64(base)-b/most*rowHeight), pixel(x(float64(i+1)/n)))
	}
	return path.String()
}

func pixel(v float64) string { return fmt.Sprintf("%.1f", v) }
