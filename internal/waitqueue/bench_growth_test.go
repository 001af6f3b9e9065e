package waitqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/waitqueue"
)

// Growth: the cost of one item must not grow with the number of items. Compare ns/op and B/op of the sizes.
var sizes = []int{1_000, 10_000, 100_000}

// BenchmarkGrowthHazard48ContendedKeys notes a rival for each of n keys.
func BenchmarkGrowthHazard48ContendedKeys(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys := names(n)
			b.ReportAllocs()
			for b.Loop() {
				q := waitqueue.New(atLeast(3), func(time.Duration, func()) {})
				for i := range keys {
					q.Rival(keys[i:i+1], time.Millisecond, time.Second)
				}
			}
			perItem(b, n)
		})
	}
}

// BenchmarkGrowthWaiters lets n entries wait for one key and get it one after another. Half of the entries leave
// without it, from random positions.
func BenchmarkGrowthWaiters(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			want := waitqueue.Want{Keys: []string{"key"}}
			b.ReportAllocs()
			for b.Loop() {
				q := waitqueue.New(atLeast(3), func(time.Duration, func()) {})
				all := make([]waitqueue.Entry, n)
				for i := range all {
					q.Enter(&all[i], want)
				}
				for i := 1; i < n; i += 2 {
					q.GiveUp(&all[(i*7919)%n|1], at(0), nil, 0)
				}
				for i := 0; i < n; i += 2 {
					q.Begin(&all[i], 0)
					q.Leave(&all[i], at(0))
				}
			}
			perItem(b, n)
		})
	}
}

// BenchmarkGrowthWaitersForTwoKeys lets n entries wait for one common key and for one private key each. The two keys
// block the entries in turns.
func BenchmarkGrowthWaitersForTwoKeys(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys := names(n)
			b.ReportAllocs()
			for b.Loop() {
				q := waitqueue.New(atLeast(3), func(time.Duration, func()) {})
				all := make([]waitqueue.Entry, n)
				for i := range all {
					q.Enter(&all[i], waitqueue.Want{Keys: []string{"common", keys[i]}})
				}
				for i := range all {
					q.Begin(&all[i], 0)
					q.Blocked(&all[i], keys[i:i+1], 0)
				}
				for i := range all {
					q.Leave(&all[i], at(0))
				}
			}
			perItem(b, n)
		})
	}
}

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%d", i)
	}
	return keys
}

func perItem(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
}
