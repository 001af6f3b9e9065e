package workload_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestAWallClockKeepsWhatItGained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, copied workload.WallClock
		check := func(want time.Duration) {
			t.Helper()
			if got := c.Now().Sub(time.Now().Round(0)); got != want {
				t.Errorf("ahead by %v, want %v", got, want)
			}
			copied.Set(c.Setting())
			if a, b := copied.Now(), c.Now(); !a.Equal(b) {
				t.Errorf("a copy has %v, not %v", a, b)
			}
		}
		check(0)
		c.SetClockRate(1.5)
		<-time.After(10 * time.Second)
		check(5 * time.Second)
		c.MoveClock(-time.Hour)
		c.SetClockRate(0.5)
		<-time.After(4 * time.Second)
		check(3*time.Second - time.Hour)
		c.SetClockRate(1)
		<-time.After(time.Minute)
		check(3*time.Second - time.Hour)
	})
}
