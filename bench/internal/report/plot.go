package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

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
		switch rate := r.Figures[result.OpsPerS]; {
		case r.Subject == "limit":
			limit = rate
		case rate > 0:
			points[r.Subject] = append(points[r.Subject], plotter.XY{X: float64(r.Workers), Y: rate})
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

// charts are the pictures of one scenario.
func charts(s Section) []chart {
	switch s.Name {
	case "uncontended":
		return byWorkers(s.Rows, "Cycle time, nobody else wants the key", "cycle")
	case "distinct":
		return append([]chart{throughput(s.Rows)}, byWorkers(s.Rows, "Cycle time, keys of their own", "cycle")...)
	case "stopped":
		return byWorkers(s.Rows, "Cycle time with one master stopped", "cycle")
	case "slow":
		return byWorkers(s.Rows, "Cycle time with one master 50 ms late", "cycle")
	case "spread":
		return byWorkers(s.Rows, "Acquire time with masters 2 to 10 ms away", "acquire")
	case "distant":
		return byWorkers(s.Rows, "Handoff gap with masters 2 to 10 ms away", "gap")
	case "contended":
		return append(byWorkers(s.Rows, "Handoff gap: from a release call to the next grant", "gap"),
			byWorkers(s.Rows, "Waiting time for a contended key", "wait")...)
	case "cohort":
		return byKind(s.Rows, "Waiting time, 32 goroutines of", "wait")
	default:
		return nil
	}
}

func byKind(rows []result.Row, title, name string) []chart {
	return by(rows, name, func(r result.Row) string { return title + " " + r.Kind })
}

func byWorkers(rows []result.Row, title, name string) []chart {
	return by(rows, name, func(r result.Row) string { return fmt.Sprintf("%s (%d workers)", title, r.Workers) })
}

// by draws one chart for the rows of each title, in the order of the rows.
func by(rows []result.Row, name string, title func(result.Row) string) []chart {
	var titles []string
	for _, r := range rows {
		if t := title(r); !slices.Contains(titles, t) {
			titles = append(titles, t)
		}
	}
	var out []chart
	for _, t := range titles {
		same := slices.DeleteFunc(slices.Clone(rows), func(r result.Row) bool { return title(r) != t })
		out = append(out, distributions(t, name, same))
	}
	return out
}
