package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/result"
)

// theme has the differences between the picture for a light page and for a dark page.
type theme struct {
	ink, grid color.Color
	// lines are the colours of the subjects, by subjectOrder.
	lines []color.Color
}

func rgb(hex uint32) color.Color {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

func colors(hex ...uint32) []color.Color {
	var out []color.Color
	for _, h := range hex {
		out = append(out, rgb(h))
	}
	return out
}

func light() theme {
	return theme{
		ink: rgb(0x1f2328), grid: rgb(0xd8dee4),
		lines: colors(0xcf222e, 0x0969da, 0x54aeff, 0x8250df, 0x1a7f37, 0x9a6700, 0x57606a, 0xbf3989, 0xff80c8,
			0x1b7c83, 0x218bff),
	}
}

func dark() theme {
	return theme{
		ink: rgb(0xe6edf3), grid: rgb(0x3d444d),
		lines: colors(0xff7b72, 0x58a6ff, 0xa5d6ff, 0xd2a8ff, 0x56d364, 0xe3b341, 0x9198a1, 0xf778ba, 0xffbedd,
			0x39c5cf, 0x79c0ff),
	}
}

// subjectOrder fixes the colour of every subject, so that it has the same one in every picture.
var subjectOrder = []string{
	"redlock", "redsync", "redsync-failfast", "rueidis", "goredis-fanout", "redislock-single",
	"limit", "etcd", "etcd-memory", "postgres", "redsync-mutex",
}

func (t theme) color(subject string) color.Color {
	i := slices.Index(subjectOrder, subject)
	if i < 0 {
		i = len(subject)
	}
	return t.lines[i%len(t.lines)]
}

// series is one line of a picture.
type series struct {
	name, subject string
	points        plotter.XYs
	dashed        bool
}

// chart is a picture before it has colours.
type chart struct {
	Title          string
	xLabel, yLabel string
	xTicks, yTicks plot.Ticker
	series         []series
}

// Figure is a chart drawn for both pages.
type Figure struct {
	Title       string
	Light, Dark template.HTML
	Legend      []Legend
}

// Legend is one line's name and colours. It is text of the page, because in the drawing it would cover lines.
type Legend struct {
	Name string
	// Style has the colours for both pages and the kind of line.
	Style template.CSS
}

func (c chart) legend() []Legend {
	bright, dim := light(), dark()
	var out []Legend
	for _, s := range c.series {
		kind := "solid"
		if s.dashed {
			kind = "dashed"
		}
		style := fmt.Sprintf("--light:%s;--dark:%s;border-top-style:%s", hex(bright.color(s.subject)),
			hex(dim.color(s.subject)), kind)
		//nolint:gosec // made of the constants above
		out = append(out, Legend{Name: s.name, Style: template.CSS(style)})
	}
	return out
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

const (
	width  = 21 * vg.Centimeter
	height = 11 * vg.Centimeter
)

// drawn returns the chart without series that have no points.
func (c chart) drawn() chart {
	c.series = slices.DeleteFunc(c.series, func(s series) bool { return len(s.points) == 0 })
	return c
}

// figure draws the chart twice. It returns false for a chart without points.
func (c chart) figure() (Figure, bool, error) {
	if c = c.drawn(); len(c.series) == 0 {
		return Figure{}, false, nil
	}
	bright, err := c.draw(light())
	if err != nil {
		return Figure{}, false, fmt.Errorf("report: plot %q: %w", c.Title, err)
	}
	dim, err := c.draw(dark())
	if err != nil {
		return Figure{}, false, fmt.Errorf("report: plot %q: %w", c.Title, err)
	}
	return Figure{Title: c.Title, Light: bright, Dark: dim, Legend: c.legend()}, true, nil
}

func (c chart) draw(t theme) (template.HTML, error) {
	p, err := c.plot(t)
	if err != nil {
		return "", err
	}
	return toSVG(p)
}

// plot builds the picture in the colours of a theme.
func (c chart) plot(t theme) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Scale = plot.LogScale{}
		a.LineStyle.Color, a.Tick.LineStyle.Color = t.ink, t.ink
		a.Label.TextStyle.Color, a.Tick.Label.Color = t.ink, t.ink
		a.Label.TextStyle.Font = font.From(sans, 11)
		a.Tick.Label.Font = font.From(sans, 10)
	}
	p.X.Label.Text, p.Y.Label.Text = c.xLabel, c.yLabel
	p.X.Tick.Marker, p.Y.Tick.Marker = c.xTicks, c.yTicks

	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = t.grid, t.grid
	p.Add(grid)
	for _, s := range c.series {
		line, err := s.line(t)
		if err != nil {
			return nil, err
		}
		p.Add(line)
	}
	widen(&p.X)
	widen(&p.Y)
	return p, nil
}

// line is the series in the colours of a theme.
func (s series) line(t theme) (*plotter.Line, error) {
	line, err := plotter.NewLine(s.points)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = t.color(s.subject), vg.Points(1.5)
	if s.subject == subjectOrder[0] {
		line.Width = vg.Points(2.5)
	}
	if s.dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	return line, nil
}

// widen gives some length to an axis with equal values, because a logarithmic axis of length zero can't be drawn.
func widen(a *plot.Axis) {
	if a.Max <= a.Min {
		a.Min, a.Max = a.Min/2, a.Min*2
	}
}

func toSVG(p *plot.Plot) (template.HTML, error) {
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", err
	}
	// Inside a page neither the XML declaration nor the comment before the element is allowed.
	_, svg, found := strings.Cut(out.String(), "<svg")
	if !found {
		return "", fmt.Errorf("no <svg> in %d bytes", out.Len())
	}
	return template.HTML("<svg" + svg), nil //nolint:gosec // drawn here; the drawing library escapes its texts
}

// distributions is a chart of a latency distribution for every row: how long the slowest one in ten, in a hundred, in
// a thousand took.
func distributions(title, name string, rows []result.Row) chart {
	c := chart{
		Title: title, xLabel: "percentile", yLabel: "time",
		xTicks: plot.TickerFunc(percentileTicks), yTicks: plot.TickerFunc(timeTicks),
	}
	for _, r := range rows {
		c.series = append(c.series, series{name: r.Subject, subject: r.Subject, points: tail(r.Distributions[name])})
	}
	return c
}

// tail samples a distribution evenly in the logarithm of 1/(1-q), up to where a single sample is left.
func tail(l measure.Latency) plotter.XYs {
	var out plotter.XYs
	count := float64(l.Count())
	const perDecade = 24
	for i := 0; ; i++ {
		x := math.Pow(10, float64(i)/perDecade)
		if x > count {
			break
		}
		out = append(out, plotter.XY{X: x, Y: measure.Micros(max(l.Quantile(1-1/x), 1))})
	}
	return out
}

// throughput is a chart of cycles a second over workers.
func throughput(rows []result.Row) chart {
	c := chart{
		Title: "Cycles a second over workers, each with keys of its own", xLabel: "workers", yLabel: "cycles/s",
		xTicks: plot.TickerFunc(workerTicks), yTicks: plot.TickerFunc(countTicks),
	}
	points := map[string]plotter.XYs{}
	limit, most, least := 0.0, 0.0, math.Inf(1)
	for _, r := range rows {
		switch {
		case r.Subject == "limit":
			limit = r.OpsPerS
		case r.OpsPerS > 0:
			points[r.Subject] = append(points[r.Subject], plotter.XY{X: float64(r.Workers), Y: r.OpsPerS})
			most, least = max(most, float64(r.Workers)), min(least, float64(r.Workers))
		}
	}
	for _, name := range subjectOrder {
		p := points[name]
		sort.Slice(p, func(i, j int) bool { return p[i].X < p[j].X })
		c.series = append(c.series, series{name: name, subject: name, points: p})
	}
	if limit > 0 && most > 0 {
		c.series = append(c.series, series{
			name: "limit (redis-benchmark)", subject: "limit", dashed: true,
			points: plotter.XYs{{X: least, Y: limit}, {X: most, Y: limit}},
		})
	}
	return c
}
