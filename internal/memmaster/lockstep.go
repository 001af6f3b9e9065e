package memmaster

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// Lockstep has five processes try for the same at the same moment, 100 times, in a synctest bubble. Their requests
// take up to 2 ms to each of five masters. Each time so many processes have to win, and the others have to get
// [redlock.ErrHeld].
//
// process makes what a process does: a try that returns nil if it has won, after 5 s in which the others have tried.
func Lockstep(t *testing.T, winners int, process func(t *testing.T, l *redlock.Locker) (try func() error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := New(5)
		masters.Behave(func(*single.Request) Fate { return Fate{Before: rand.N(2 * time.Millisecond)} })
		tries := make([]func() error, 5)
		for i := range tries {
			l, err := redlock.New(masters.All(), redlock.Options{Clock: NewClock(0)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			tries[i] = process(t, l)
		}
		for tick := range 100 {
			errs := make([]error, len(tries))
			var all sync.WaitGroup
			for i, try := range tries {
				all.Go(func() { errs[i] = try() })
			}
			all.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !errors.Is(err, redlock.ErrHeld) {
					t.Errorf("tick %d: %v", tick, err)
				}
			}
			if won != winners {
				t.Errorf("tick %d: %d of %d have won, want %d", tick, won, len(tries), winners)
			}
			<-time.After(time.Second)
		}
	})
}
