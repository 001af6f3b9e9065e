// Package seedrun runs something for many seeds, side by side.
package seedrun

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Longest is how long, in real time, a run in virtual time may go on. It takes some milliseconds, unless goroutines
// wait for something that virtual time can't bring, or one never waits.
const Longest = time.Minute

// Ends calls do in another goroutine. It reports false, and leaves that goroutine behind, if do has not returned after
// Longest.
func Ends(do func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	select {
	case <-ended:
		return true
	case <-time.After(Longest):
		return false
	}
}

// Each calls do for n seeds, from first on, by so many workers at the same time; 0 workers mean one for each
// processor. Once ctx is done or do has returned false, it begins no other. It returns when all calls have.
func Each(ctx context.Context, workers int, first uint64, n int, do func(seed uint64) (goOn bool)) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		mu   sync.Mutex
		next int
		all  sync.WaitGroup
	)
	claim := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= n || ctx.Err() != nil {
			return 0, false
		}
		next++
		return first + uint64(next-1), true
	}
	for range workers {
		all.Go(func() {
			for seed, ok := claim(); ok; seed, ok = claim() {
				if !do(seed) {
					stop()
				}
			}
		})
	}
	all.Wait()
}
