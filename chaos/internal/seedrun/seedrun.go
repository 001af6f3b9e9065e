// Package seedrun runs something for many seeds, side by side.
package seedrun

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// Longest is how long, in real time, a run in virtual time may go on. It takes some milliseconds, unless goroutines
// wait for something that virtual time can't bring, or one never waits.
const Longest = time.Minute

// Ends calls do in another goroutine. It reports false, and leaves that goroutine behind, if do has not returned after
// Longest. If the whole process is stopped for a while, that counts as one second at most.
func Ends(do func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	seconds := time.NewTicker(time.Second) // it drops the ticks that nobody took
	defer seconds.Stop()
	for range Longest / time.Second {
		select {
		case <-ended:
			return true
		case <-seconds.C:
		}
	}
	return false
}

// Each calls do for n seeds, from first on, by so many workers at the same time; 0 workers mean one for each
// processor. Once ctx is done or do has returned false, it begins no other. It returns when all calls have.
func Each(ctx context.Context, workers int, first uint64, n int, do func(seed uint64) (goOn bool)) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all errgroup.Group
	all.SetLimit(workers)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		all.Go(func() error {
			if ctx.Err() == nil && !do(first+uint64(i)) {
				stop()
			}
			return nil
		})
	}
	_ = all.Wait()
}
