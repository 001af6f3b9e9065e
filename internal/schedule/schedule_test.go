package schedule_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/growth"
	"github.com/seed-624411e5/redlock/internal/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock follows the time of the bubble. It can be ahead of its timers, as the machine's clock is after a suspension.
type clock struct {
	began time.Time
	slept atomic.Int64 // nanoseconds
}

func (c *clock) now() time.Duration { return time.Since(c.began) + time.Duration(c.slept.Load()) }

func after(d time.Duration, f func()) schedule.Timer { return time.AfterFunc(d, f) }

type target func()

func (t target) Fire() { t() }

func TestEntriesFireInTheirOrderAndNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{began: time.Now()}
		s := schedule.New(c.now, after)
		defer s.Close()
		var fired []time.Duration
		entries := make([]schedule.Entry, 20)
		fire := target(func() { fired = append(fired, c.now()) })
		for i := range entries {
			s.Set(&entries[i], time.Duration(i*7%20+1)*time.Minute, fire)
		}
		s.Set(&entries[0], time.Hour, fire) // later than before
		s.Remove(&entries[1])               // it was due after 8 minutes
		s.Remove(&entries[1])
		<-time.After(2 * time.Hour)
		synctest.Wait()
		want := []time.Duration{}
		for minute := 2; minute <= 20; minute++ {
			if minute != 8 {
				want = append(want, time.Duration(minute)*time.Minute)
			}
		}
		if want = append(want, time.Hour); !slices.Equal(fired, want) {
			t.Errorf("fired at %v, want %v", fired, want)
		}
	})
}

// Two entries are due one soon after the other, sooner than the timer that is set, and are set in either order.
func TestEachEntryFiresAtItsOwnTime(t *testing.T) {
	for _, at := range [][]time.Duration{
		{100 * time.Millisecond, 100*time.Millisecond + 1}, {100*time.Millisecond + 1, 100 * time.Millisecond}, {
			900 * time.Millisecond, 5 * time.Millisecond,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := clock{began: time.Now()}
			s := schedule.New(c.now, after)
			defer s.Close()
			entries := make([]schedule.Entry, len(at))
			var fired []time.Duration
			for i := range entries {
				s.Set(&entries[i], at[i], target(func() { fired = append(fired, c.now()) }))
			}
			<-time.After(time.Second)
			synctest.Wait()
			want := slices.Sorted(slices.Values(at))
			if !slices.Equal(fired, want) {
				t.Errorf("fired at %v, want %v", fired, want)
			}
		})
	}
}

// The race detector is the check: other goroutines set an entry while it fires.
func TestAnEntryMayBeSetByOthersAsItFires(*testing.T) {
	c := clock{began: time.Now()}
	s := schedule.New(c.now, after)
	var e schedule.Entry
	var fired atomic.Int64
	fire := target(func() { fired.Add(1) })
	for fired.Load() < 200 {
		s.Set(&e, c.now(), fire)
		runtime.Gosched()
	}
	s.Close()
}

func TestAnEntryMaySetItselfAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{began: time.Now()}
		s := schedule.New(c.now, after)
		defer s.Close()
		var e schedule.Entry
		count := 0
		var fire target
		fire = func() {
			if count++; count < 10 {
				s.Set(&e, c.now()+time.Minute, fire)
			}
		}
		s.Set(&e, 0, fire)
		<-time.After(time.Hour)
		synctest.Wait()
		if count != 10 {
			t.Errorf("fired %d times, want 10", count)
		}
	})
}

func TestEntriesDueDuringASuspensionFireWithinASecondAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{began: time.Now()}
		s := schedule.New(c.now, after)
		defer s.Close()
		var e schedule.Entry
		fired := false
		s.Set(&e, time.Hour, target(func() { fired = true }))
		synctest.Wait()
		c.slept.Store(int64(time.Hour))
		<-time.After(time.Second)
		synctest.Wait()
		if !fired {
			t.Error("a second after an hour of sleep it has not fired")
		}
	})
}

func TestNothingFiresAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{began: time.Now()}
		s := schedule.New(c.now, after)
		var e, late schedule.Entry
		fire := target(func() { t.Error("it fired") })
		s.Set(&e, time.Minute, fire)
		s.Close()
		s.Set(&late, time.Minute, fire)
		<-time.After(time.Hour)
	})
}

// An entry fires while Close begins. Other entries that are due at the same time do not fire.
func TestNothingMoreFiresOnceCloseHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{began: time.Now()}
		s := schedule.New(c.now, after)
		var first, second schedule.Entry
		var fired atomic.Int32
		fire := target(func() {
			fired.Add(1)
			go s.Close()
			synctest.Wait() // until it waits for this one
		})
		s.Set(&first, time.Minute, fire)
		s.Set(&second, time.Minute, fire)
		<-time.After(time.Hour)
		if fired.Load() != 1 {
			t.Errorf("%d have fired, want the first", fired.Load())
		}
	})
}

// BenchmarkGrowthSchedule sets n entries, moves each and removes half.
func BenchmarkGrowthSchedule(b *testing.B) {
	growth.Run(b, func(n int) any {
		s := schedule.New(func() time.Duration { return 0 }, func(time.Duration, func()) schedule.Timer {
			return stopped{}
		})
		entries := make([]schedule.Entry, n)
		for i := range entries {
			s.Set(&entries[i], time.Hour+time.Duration(i*7919%n), target(func() {}))
		}
		for i := range entries {
			s.Set(&entries[i], 2*time.Hour+time.Duration(i*104729%n), target(func() {}))
		}
		for i := 0; i < n; i += 2 {
			s.Remove(&entries[i])
		}
		return s
	})
}

// stopped is a timer that never fires.
type stopped struct{}

func (stopped) Stop() bool               { return true }
func (stopped) Reset(time.Duration) bool { return true }
