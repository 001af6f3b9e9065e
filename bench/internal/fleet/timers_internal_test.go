package fleet

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// third is how long the third of five sleeps took, the median of some tries.
func third() time.Duration {
	var took []time.Duration
	for range 15 {
		start, ends := time.Now(), make(chan time.Duration, 5)
		for i := range cap(ends) {
			time.AfterFunc(time.Duration(2*i+2)*time.Millisecond, func() { ends <- time.Since(start) })
		}
		for i := range cap(ends) {
			if end := <-ends; i == 2 {
				took = append(took, end)
			}
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// BenchmarkTimers shows the effect of exactTimers: how late the third of five timers is, in microseconds.
func BenchmarkTimers(b *testing.B) {
	for name, keep := range map[string]func() func(){"idle": func() func() { return func() {} }, "kept": exactTimers} {
		b.Run(name, func(b *testing.B) {
			stop := keep()
			defer stop()
			late := time.Duration(0)
			for b.Loop() {
				late += third() - 6*time.Millisecond
			}
			b.ReportMetric(float64(late.Microseconds())/float64(b.N), "µs-late")
		})
	}
}

func TestExactTimersEndTheirGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	stop := exactTimers()
	stop()
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, %d before", now, before)
	}
}
