package benchmark

import (
	"math"
	"time"
)

// Axis is a logarithmic axis of durations, in microseconds.
type Axis struct{ Low, High float64 }

// AxisOf returns an axis for all of these measures. It begins and ends at a round number of 1, 2 or 5. It returns false
// if there is nothing to show.
func AxisOf(measures []Measure) (a Axis, ok bool) {
	a.Low = math.Inf(1)
	for _, m := range measures {
		if len(m.Buckets) == 0 {
			continue
		}
		a.Low = min(a.Low, m.Buckets[0].To)
		a.High = max(a.High, m.Max)
	}
	if a.High == 0 {
		return Axis{}, false
	}
	a.Low, a.High = roundDown(a.Low), roundUp(a.High)
	return a, true
}

// steps are the round numbers of a decade.
var steps = []float64{1, 2, 5, 10}

func roundDown(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	best := decade
	for _, s := range steps {
		if s*decade < v {
			best = s * decade
		}
	}
	return best
}

func roundUp(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, s := range steps {
		if s*decade > v {
			return s * decade
		}
	}
	return 20 * decade
}

// At returns the position of a duration, from 0 to 1.
func (a Axis) At(us float64) float64 {
	return min(max(math.Log(us/a.Low)/math.Log(a.High/a.Low), 0), 1)
}

// Ticks are the round numbers on the axis.
func (a Axis) Ticks() (ticks []float64) {
	for decade := math.Pow(10, math.Floor(math.Log10(a.Low))); decade <= a.High; decade *= 10 {
		for _, s := range steps[:3] {
			if v := s * decade; v >= a.Low*0.999 && v <= a.High*1.001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// Bins counts the durations of a measure in n parts of the axis. It spreads the durations in a bucket over the parts
// that the bucket touches.
func (a Axis) Bins(m Measure, n int) []float64 {
	bins := make([]float64, n)
	for _, b := range m.Buckets {
		from, to := a.At(max(b.From, a.Low))*float64(n), a.At(max(b.To, a.Low))*float64(n)
		first, last := min(int(from), n-1), min(int(to), n-1)
		for i := first; i <= last; i++ {
			share := 1.0
			if to > from {
				share = (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
			}
			bins[i] += share * float64(b.N)
		}
	}
	return bins
}

// Show formats microseconds as a duration with three digits.
func Show(us float64) string {
	if us <= 0 {
		return "0s"
	}
	digits := math.Pow(10, 2-math.Floor(math.Log10(us)))
	return time.Duration(math.Round(us*digits) / digits * float64(time.Microsecond)).Round(time.Nanosecond).String()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
