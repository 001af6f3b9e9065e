package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
)

// steps are the marks 1, 2 and 5 of every decade between low and high.
func steps(low, high float64, label func(float64) string) []plot.Tick {
	var out []plot.Tick
	if !(low > 0) || math.IsInf(high, 0) {
		return out
	}
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, m := range [...]float64{1, 2, 5} {
			if v := m * decade; v >= low && v <= high {
				out = append(out, plot.Tick{Value: v, Label: label(v)})
			}
		}
	}
	return out
}

func timeTicks(low, high float64) []plot.Tick { return steps(low, high, Duration) }

func countTicks(low, high float64) []plot.Tick {
	return steps(low, high, func(v float64) string { return fmt.Sprintf("%g", v) })
}

func workerTicks(low, high float64) []plot.Tick {
	var out []plot.Tick
	for v := 1.0; v <= high; v *= 2 {
		if v >= low {
			out = append(out, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
		}
	}
	return out
}

// percentileTicks labels the values of 1/(1-q) with their percentiles.
func percentileTicks(low, high float64) []plot.Tick {
	var out []plot.Tick
	for _, t := range []plot.Tick{
		{Value: 1, Label: "0"},
		{Value: 2, Label: "50"},
		{Value: 10, Label: "90"},
		{Value: 100, Label: "99"},
		{Value: 1e3, Label: "99.9"},
		{Value: 1e4, Label: "99.99"},
		{Value: 1e5, Label: "99.999"},
		{Value: 1e6, Label: "99.9999"},
	} {
		if t.Value >= low && t.Value <= high {
			out = append(out, t)
		}
	}
	return out
}
