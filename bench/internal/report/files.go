package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
)

// Plots writes every chart into dir as two SVG files, TITLE-light.svg and TITLE-dark.svg. It makes dir if necessary.
// The legend is below the chart.
func Plots(dir string, sections []Section) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: plots: %w", err)
	}
	for _, s := range sections {
		for _, c := range charts(s) {
			if c = c.drawn(); len(c.series) == 0 {
				continue
			}
			for name, t := range map[string]theme{"light": light(), "dark": dark()} {
				if err := c.save(filepath.Join(dir, slug(c.Title)+"-"+name+".svg"), t); err != nil {
					return fmt.Errorf("report: plot %q: %w", c.Title, err)
				}
			}
		}
	}
	return nil
}

// legendLine is the height of one line of the legend below a drawing.
const legendLine = 0.6 * vg.Centimeter

// save draws the chart into a file, with its legend.
func (c chart) save(file string, t theme) error {
	p, err := c.plot(t)
	if err != nil {
		return err
	}
	below := vg.Length(len(c.series)) * legendLine
	canvas := vgsvg.New(width, height+below)
	all := draw.New(canvas)
	const margin = 0.4 * vg.Centimeter // the last ticks' numbers stand out
	p.Draw(draw.Crop(all, 0, -margin, below, -margin))
	legend := plot.NewLegend()
	legend.Left, legend.Top, legend.Padding = true, true, vg.Points(3)
	legend.TextStyle.Color = t.ink
	legend.TextStyle.Font = font.From(sans, 10)
	for _, s := range c.series {
		line, err := s.line(t)
		if err != nil {
			return err
		}
		legend.Add(s.name, line)
	}
	legend.Draw(draw.Crop(all, 1.5*vg.Centimeter, 0, 0, -height))
	return cli.WriteFile(file, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}

// slug makes a file name of a title.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}
