package benchmark_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
)

// precise is the greatest allowed error of a histogram's quantile.
const precise = 1.0 / 512

// durations draws times from nanoseconds to minutes, as evenly over their logarithm as over their value.
func durations() *rapid.Generator[[]time.Duration] {
	one := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(math.Exp(rapid.Float64Range(0, math.Log(float64(10*time.Minute))).Draw(t, "log")))
	})
	return rapid.SliceOfN(one, 1, 400)
}

func TestQuantilesOfAHistogramMatchItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := durations().Draw(t, "values")
		var h benchmark.Histogram
		for _, d := range values {
			h.Record(d)
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1, rapid.Float64Range(0, 1).Draw(t, "q")} {
			rank := min(max(int(math.Ceil(q*float64(len(values))-1e-9)), 1), len(values))
			exact, got := values[rank-1], h.Quantile(q)
			if off := math.Abs(float64(got - exact)); off > float64(exact)*precise+1 {
				t.Fatalf("quantile %v of %d values is %v, want %v: %v off", q, len(values), got, exact, off)
			}
		}
		if h.Max() != values[len(values)-1] || h.Count() != len(values) {
			t.Fatalf("max %v of %d", h.Max(), h.Count())
		}
	})
}

func TestHistogramsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, sum benchmark.Histogram
		for range 3 {
			var part benchmark.Histogram
			for _, d := range durations().Draw(t, "part") {
				part.Record(d)
				all.Record(d)
			}
			sum.Add(&part)
		}
		var n uint64
		for _, b := range sum.Buckets() {
			n += b.N
		}
		if int(n) != all.Count() {
			t.Fatalf("buckets have %d, want %d", n, all.Count())
		}
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			if got, want := sum.Quantile(q), all.Quantile(q); got != want {
				t.Fatalf("quantile %v is %v, want %v", q, got, want)
			}
		}
	})
}

func TestAHistogramAcceptsImpossibleDurations(t *testing.T) {
	var h benchmark.Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Buckets() != nil {
		t.Error("an empty one has something")
	}
	h.Record(-time.Second)
	h.Record(math.MaxInt64)
	if h.Quantile(0) != 0 || h.Max() != 1<<40 || h.Count() != 2 {
		t.Errorf("from %v to %v, %d", h.Quantile(0), h.Max(), h.Count())
	}
}
