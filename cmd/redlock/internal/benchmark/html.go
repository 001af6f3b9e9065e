package benchmark

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// head is the page up to its first heading.
//
//go:embed page.html
var head string

// htmlPage is a page in the making. Package html/template would add 11 MB of methods to the command.
type htmlPage struct{ strings.Builder }

// add writes markup. It escapes texts among its arguments, so they may be in texts and in quoted attributes.
func (p *htmlPage) add(markup string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = html.EscapeString(text)
		}
	}
	fmt.Fprintf(p, markup, args...)
}

// WriteHTML writes r as a page that needs no other file. old are the reports that r was compared with; nil if none.
func WriteHTML(out io.Writer, r *Report, old []*Report) error {
	p := &htmlPage{}
	p.WriteString(head)
	p.add("<h1>redlock bench</h1>\n<p class=\"soft\">%s · redlock %s · %s %s, %v CPUs</p>\n<p>%s</p>\n",
		r.Time.Format("2006-01-02 15:04 MST"), r.Version, r.Go, r.Platform, r.CPUs, r.Settings.String())
	for _, warning := range r.Warnings() {
		p.add("<p class=\"bad\">%s</p>\n", warning)
	}
	if r.Comparison != nil {
		p.comparison(r.Comparison)
	}
	p.WriteString("<h2>Distributions</h2>\n")
	p.chart(r, old)
	columns := []string{
		"measure", "operations", "p50", "p90", "p99", "p99.9", "longest", "p50 of the rounds", "failed",
	}
	p.table(columns, r.Cells(), func(i int) string {
		if r.Measures[i].Failed+r.Measures[i].Unfinished > 0 {
			return "bad"
		}
		return ""
	})
	p.WriteString(`<p class="soft">A quantile is absent where less than one operation lies beyond it. Each bar is a
part of the axis of time; within a row their heights are in proportion.</p>
<h2>Masters</h2>
<ul>`)
	for _, m := range r.Masters {
		p.add("<li>%s", m.Name)
		if !m.Usable {
			p.add(`: <span class="bad">did not answer and was not measured: %s</span>`, m.Error)
		}
		p.WriteString("</li>\n")
	}
	p.add("</ul>\n<p>%s</p>\n</body>\n</html>\n", r.Keys.String())
	_, err := io.WriteString(out, p.String())
	return err
}

func (p *htmlPage) comparison(c *Comparison) {
	p.WriteString("<h2>Compared with ")
	for i, file := range c.Old {
		p.WriteString([]string{"", ", "}[min(i, 1)])
		p.add("<code>%s</code>", file)
	}
	p.add(": <span class=\"%s\">%s</span></h2>\n<ul>", classOf(c.Verdict), c.Verdict)
	for _, note := range c.Notes {
		p.add("<li>%s</li>", note)
	}
	p.WriteString("</ul>\n")
	columns := []string{"measure", "quantile", "old", "new", "change", "p", "rounds", "verdict"}
	p.table(columns, c.Cells(), func(i int) string { return "text " + classOf(c.Rows[i].Verdict) })
	p.add(`<p class="soft">Times are medians of the rounds, with an interval that has the median with 95 %% probability;
a range in brackets is that of fewer than six rounds. p is of the Mann-Whitney U test, after the method of Holm for all
rows together. Slower and faster are said where p is below %v and the median has changed by %s or more.</p>
`, c.Alpha, ShowPart(c.Worse))
}

func classOf(verdict string) string {
	return map[string]string{Slower: "bad", Unknown: "warn", Faster: "good"}[verdict]
}

// table writes a table. The first cell of each row is its heading; class returns the class of the last one.
func (p *htmlPage) table(columns []string, rows [][]string, class func(i int) string) {
	p.WriteString("<div class=\"wide\"><table>\n<thead><tr>")
	for _, column := range columns {
		p.add(`<th scope="col" class="%s">%s</th>`, map[bool]string{true: "text"}[column == "verdict"], column)
	}
	p.WriteString("</tr></thead>\n<tbody>")
	for i, row := range rows {
		last := len(row) - 1
		p.add(`<tr><th scope="row">%s</th>`, row[0])
		for _, cell := range row[1:last] {
			p.add("<td>%s</td>", cell)
		}
		p.add(`<td class="%s">%s</td></tr>`+"\n", class(i), row[last])
	}
	p.WriteString("</tbody>\n</table></div>\n")
}

// The chart's measures, in pixels.
const (
	chartWidth, chartLabels = 1000, 250
	rowHeight, rowGap       = 46, 12
	chartTop, chartBins     = 24, 150
	// leastBetween is the least distance between the labels of ticks.
	leastBetween = 48
)

// chart draws the histograms of all measures below each other, over one axis. Lines show the old reports.
func (p *htmlPage) chart(r *Report, old []*Report) {
	var before []Measure
	key := ""
	if len(old) > 0 {
		before, key = pooled(old), `<span class="key"><i class="o"></i>before</span>`
	}
	axis, ok := AxisOf(slices.Concat(r.Measures, before))
	if !ok {
		p.WriteString("<p>Nothing was measured.</p>\n")
		return
	}
	bottom := chartTop + len(r.Measures)*(rowHeight+rowGap)
	fmt.Fprintf(p, `<p><span class="key"><i class="b"></i>operations</span>%s
<span class="key"><i class="m"></i>p50</span><span class="key"><i class="t"></i>p99</span></p>
<figure>
<svg viewBox="0 0 %d %d" role="img"
aria-label="Histograms of all measures over one logarithmic axis of time; the table below has their numbers">
`, key, chartWidth, bottom+6)
	free := 0.0
	for _, v := range axis.Ticks() {
		x := chartX(axis.At(v))
		p.add(`<line class="grid" x1="%.1f" x2="%.1f" y1="20" y2="%v"/>`+"\n", x, x, bottom)
		if x >= free {
			p.add(`<text class="tick" text-anchor="middle" x="%.1f" y="12">%s</text>`+"\n", x, Show(v))
			free = x + leastBetween
		}
	}
	for i, m := range r.Measures {
		base := chartTop + (i+1)*(rowHeight+rowGap)
		p.add(`<text x="0" y="%v">%s</text>`+"\n"+`<path class="bar" d="%s"/>`+"\n", base-6, m.Name,
			bars(axis.Bins(m, chartBins), base))
		if len(before) > 0 && len(before[i].Buckets) > 0 {
			p.add(`<path class="old" d="%s"/>`+"\n", outline(axis.Bins(before[i], chartBins), base))
		}
		for _, mark := range [][2]string{{"p50", "mark"}, {"p99", "mark tail"}} {
			if v, ok := m.get(mark[0]); ok {
				x := chartX(axis.At(v))
				p.add(`<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n", mark[1], x, x, base-rowHeight,
					base)
			}
		}
	}
	p.WriteString("</svg>\n</figure>\n")
}

// chartX is the place of a position on the axis.
func chartX(at float64) float64 { return chartLabels + at*(chartWidth-chartLabels-20) }

// bars returns a path with a bar for each bin. A bin that is not empty is visible, however small it is.
func bars(bins []float64, base int) string {
	most, n := slices.Max(bins), float64(len(bins))
	var path strings.Builder
	for i, b := range bins {
		if b > 0 {
			fmt.Fprintf(&path, "M%.1f %dV%.1fH%.1fV%dZ", chartX(float64(i)/n), base,
				float64(base)-max(b/most*rowHeight, 0.8), chartX(float64(i+1)/n), base)
		}
	}
	return path.String()
}

// outline returns the line over the bars.
func outline(bins []float64, base int) string {
	most, n := slices.Max(bins), float64(len(bins))
	var path strings.Builder
	fmt.Fprintf(&path, "M%.1f %d", chartX(0), base)
	for i, b := range bins {
		fmt.Fprintf(&path, "V%.1fH%.1f", float64(base)-b/most*rowHeight, chartX(float64(i+1)/n))
	}
	return path.String()
}
