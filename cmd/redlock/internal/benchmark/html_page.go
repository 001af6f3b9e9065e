package benchmark

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
)

// head is the page up to its first heading.
//
//go:embed page.html
var head string

// htmlPage is a page in the making. Package html/template would add 11 MB of methods to the command.
type htmlPage struct{ strings.Builder }

// add writes markup. It escapes its arguments, so they may be in texts and in quoted attributes.
func (p *htmlPage) add(markup string, args ...any) {
	for i, arg := range args {
		args[i] = html.EscapeString(fmt.Sprint(arg))
	}
	fmt.Fprintf(p, markup, args...)
}

// WriteHTML writes r as a page that needs no other file. old are the reports that r was compared with; nil if none.
func WriteHTML(out io.Writer, r *Report, old []*Report) error {
	p := &htmlPage{}
	p.WriteString(head)
	p.add("<h1>redlock bench</h1>\n<p class=\"soft\">%s · redlock %s · %s %s, %v CPUs</p>\n<p>%s</p>\n",
		r.Time.Format("2006-01-02 15:04 MST"), r.Version, r.Go, r.Platform, r.CPUs, r.Settings)
	for _, warning := range r.Warnings() {
		p.add("<p class=\"bad\">%s</p>\n", warning)
	}
	if r.Comparison != nil {
		p.comparison(r.Comparison)
	}
	p.WriteString("<h2>Distributions</h2>\n")
	p.chart(drawn(r, old))
	p.measures(r.Measures)
	p.WriteString("<h2>Masters</h2>\n<ul>")
	for _, m := range r.Masters {
		p.add("<li>%s", m.Name)
		if !m.Usable {
			p.add(`: <span class="bad">did not answer and was not measured: %s</span>`, m.Error)
		}
		p.WriteString("</li>\n")
	}
	p.add("</ul>\n<p>%s</p>\n</body>\n</html>\n", r.Keys)
	_, err := io.WriteString(out, p.String())
	return err
}

// comparison writes how the report differs from those before.
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
	p.table("measure", "quantile", "old", "new", "change", "p", "rounds", "verdict")
	for _, row := range c.Rows {
		verdict := row.Verdict
		if row.Why != "" {
			verdict += ": " + row.Why
		}
		p.add(`<tr><th scope="row">%s</th><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%v+%v</td>`+
			`<td class="text %s">%s</td></tr>`+"\n",
			row.Measure, row.Quantile, ShowCenter(row.Old), ShowCenter(row.New), ShowPercent(row.Change),
			ShowP(row.Adjusted),
			row.Old.N, row.New.N, classOf(row.Verdict), verdict)
	}
	p.add(`</tbody>
</table></div>
<p class="soft">Times are medians of the rounds, with an interval that has the median with 95 %% probability; a range in
brackets is that of fewer than six rounds. p is of the Mann-Whitney U test, after the method of Holm for all rows
together. Slower and faster are said where p is below %v and the median has changed by %s or more.</p>
`, c.Alpha, ShowPart(c.Worse))
}

// table begins a table with these columns, up to its rows.
func (p *htmlPage) table(columns ...string) {
	p.WriteString("<div class=\"wide\"><table>\n<thead><tr>")
	for _, column := range columns {
		class := ""
		if column == "verdict" {
			class = ` class="text"`
		}
		fmt.Fprintf(p, `<th scope="col"%s>%s</th>`, class, column)
	}
	p.WriteString("</tr></thead>\n<tbody>")
}

// chart writes the picture of all measures.
func (p *htmlPage) chart(c chart) {
	if len(c.Rows) == 0 {
		p.WriteString("<p>Nothing was measured.</p>\n")
		return
	}
	before := ""
	if c.Old {
		before = `<span class="key"><i class="o"></i>before</span>`
	}
	fmt.Fprintf(p,
		`<p><span class="key"><i class="b"></i>operations</span>%s<span class="key"><i class="m"></i>p50</span>`+
			`<span class="key"><i class="t"></i>p99</span></p>
<figure>
<svg viewBox="0 0 %d %d" role="img"
aria-label="Histograms of all measures over one logarithmic axis of time; the table below has their numbers">
`, before, c.Width, c.Height)
	for _, t := range c.Ticks {
		p.add(`<line class="grid" x1="%s" x2="%s" y1="20" y2="%v"/>`+"\n", t.X, t.X, c.Bottom)
		if t.Label != "" {
			p.add(`<text class="tick" text-anchor="middle" x="%s" y="12">%s</text>`+"\n", t.X, t.Label)
		}
	}
	for _, row := range c.Rows {
		p.add(`<text x="0" y="%v">%s</text>`+"\n"+`<path class="bar" d="%s"/>`+"\n", row.TextY, row.Name, row.Bars)
		if row.Old != "" {
			p.add(`<path class="old" d="%s"/>`+"\n", row.Old)
		}
		for _, m := range row.Marks {
			class := "mark"
			if m.Tail {
				class = "mark tail"
			}
			p.add(`<line class="%s" x1="%s" x2="%s" y1="%v" y2="%v"/>`+"\n", class, m.X, m.X, m.Y1, m.Y2)
		}
	}
	p.WriteString("</svg>\n</figure>\n")
}

// measures writes the table of all measures.
func (p *htmlPage) measures(measures []Measure) {
	p.table("measure", "operations", "p50", "p90", "p99", "p99.9", "longest", "p50 of the rounds", "failed")
	for i := range measures {
		m := &measures[i]
		p.add(`<tr><th scope="row">%s</th><td>%v</td>`, m.Name, m.N)
		for _, quantile := range m.shownQuantiles() {
			p.add("<td>%s</td>", quantile)
		}
		longest, class := None, ""
		if m.N > 0 {
			longest = Show(m.Max)
		}
		if m.Failed+m.Unfinished > 0 {
			class = "bad"
		}
		p.add(`<td>%s</td><td>%s</td><td class="%s">%s</td></tr>`+"\n", longest, m.ShowRounds(), class, m.ShowTrouble())
	}
	p.WriteString(`</tbody>
</table></div>
<p class="soft">A quantile is absent where less than one operation lies beyond it. Each bar is a
part of the axis of time; within a row their heights are in proportion.</p>
`)
}
