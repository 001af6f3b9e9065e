package locktest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/boottime"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/redlocktest"
)

// Clock is a Clock with the time of the bubble.
type Clock = memmaster.Clock

// NewClock makes a Clock that began an hour ago.
func NewClock() *Clock { return memmaster.NewClock(0) }

// wallClock is the machine's clock with another time of day.
type wallClock struct{ date func() time.Time }

func (wallClock) Now() time.Duration { return boottime.Now() }
func (c wallClock) Wall() time.Time  { return c.date() }
func (wallClock) AfterFunc(d time.Duration, f func()) redlock.Timer {
	return time.AfterFunc(d, f)
}

// Dated is the machine's clock with the time of day from a function.
func Dated(date func() time.Time) redlock.Clock { return wallClock{date} }

// HourAhead is the machine's clock with a time of day that is an hour ahead.
func HourAhead() redlock.Clock { return Dated(func() time.Time { return time.Now().Add(time.Hour) }) }

// Pass lets virtual time pass.
func Pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// Settle lets everything under way come to its end, which takes at most d of virtual time.
func Settle(d time.Duration) {
	Pass(d)
	synctest.Wait()
}

// Concurrently calls f n times at once, and waits for all calls.
func Concurrently(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// RunVirtual runs body as a subtest in virtual time.
func RunVirtual(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, body) })
}

// InMemory runs body in virtual time with three masters of package redlocktest and a Locker over these masters. It is
// for tests that do not control how a master handles a single request.
func InMemory(t *testing.T, body func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		body(t, masters, masters.Locker(t, redlock.Options{}))
	})
}

// Having counts the masters that have the key.
func Having(masters redlocktest.Masters) int {
	n := 0
	for i := range masters {
		n += len(masters[i : i+1].Held())
	}
	return n
}
