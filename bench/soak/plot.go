package main

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
)

const (
	width     = 21 * vg.Centimeter
	rowHeight = 5 * vg.Centimeter
)

// draw draws the observation, a row for each quantity.
func (o *observation) draw(file string) error {
	rows := quantities()
	var column [][]*plot.Plot
	for _, m := range rows {
		p := plot.New()
		p.Y.Label.Text, p.X.Label.Text, p.Y.Min = m.name, "minutes", 0
		var points plotter.XYs
		for _, s := range o.Samples {
			points = append(points, plotter.XY{X: s.At / 60, Y: m.of(s)})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("plot: %s: %w", m.name, err)
		}
		line.Color = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
		p.Add(plotter.NewGrid(), line)
		column = append(column, []*plot.Plot{p})
	}
	canvas := vgsvg.New(width, rowHeight*vg.Length(len(rows)))
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: vg.Points(8)}
	for i, row := range plot.Align(column, tiles, draw.New(canvas)) {
		column[i][0].Draw(row[0])
	}
	return cli.WriteFile(file, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}
