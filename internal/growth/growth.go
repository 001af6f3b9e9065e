// Package growth measures the cost of one item among 10³, 10⁴ and 10⁵ items. The cost in time or memory must not grow
// with the number of items. It is for benchmarks; people compare their figures. It is not a test of time.
package growth

import (
	"runtime"
	"strconv"
	"testing"
)

// sizes are the numbers of items.
var sizes = []int{1_000, 10_000, 100_000}

// Run lets fill make n items for every size; fill returns a value that keeps them alive. Run reports ns/item and the
// heap bytes that an item takes while it is kept.
func Run(b *testing.B, fill func(n int) (kept any)) {
	b.Helper()
	for _, n := range sizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			kept, heap := any(nil), inUse()
			for b.Loop() {
				kept = fill(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
			b.ReportMetric(float64(inUse()-heap)/float64(n), "heap-B/item")
			runtime.KeepAlive(kept)
		})
	}
}

// inUse returns how many bytes of the heap are reachable.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
