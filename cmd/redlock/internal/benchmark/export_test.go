package benchmark

import (
	"context"
	"time"
)

// Internals that are tested by themselves.
var (
	BucketOf    = bucketOf
	BucketRange = bucketRange
	Holm        = holm
	ExactP      = func(a, b []float64) float64 {
		ranks, _ := doubledRanks(a, b)
		sum := 0
		for _, r := range ranks[:len(a)] {
			sum += r
		}
		return exactP(ranks, len(a), sum)
	}
	NormalP = func(a, b []float64) float64 {
		_, ties := doubledRanks(a, b)
		u, _ := MannWhitney(a, b)
		return normalP(u, len(a), len(b), ties)
	}
)

// Pace is a pace.
type Pace struct{ *pace }

// NewPace begins one now.
func NewPace(c Config, ops int, window time.Duration) Pace {
	return Pace{newPace(c, ops, time.Now(), window)}
}

// Await and Missed are the methods of pace.
var (
	Await  = func(p Pace) (time.Time, bool) { return p.await(context.Background()) }
	Missed = func(p Pace) []time.Time { return p.missed() }
)
