package workload

import (
	"sync"
	"time"
)

// WallClock is the time of day of one client, a [ClockMover]. The zero value is right. Safe for concurrent use.
type WallClock struct {
	mu      sync.Mutex
	setting ClockSetting
}

// ClockSetting says how wrong a clock is: ahead by Ahead at Since, and by Gain of the time since then more.
type ClockSetting struct {
	Ahead time.Duration `json:"ahead"`
	Gain  float64       `json:"gain"`
	// Since is in nanoseconds of the machine's time of day.
	Since int64 `json:"since"`
}

// Now is the client's time of day, without a monotonic reading, because differences of wall clocks have none.
func (c *WallClock) Now() time.Time {
	now := time.Now().Round(0)
	return now.Add(c.Setting().at(now))
}

func (s ClockSetting) at(now time.Time) time.Duration {
	return s.Ahead + time.Duration(float64(now.UnixNano()-s.Since)*s.Gain)
}

// MoveClock moves the clock by d at once, forwards or back.
func (c *WallClock) MoveClock(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setting.Ahead += d
}

// SetClockRate makes the clock run at this rate from now on: 1 is right, 1.5 is half as fast again. The time gained so
// far stays.
func (c *WallClock) SetClockRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Round(0)
	c.setting = ClockSetting{Ahead: c.setting.at(now), Gain: rate - 1, Since: now.UnixNano()}
}

// Setting is how wrong the clock is.
func (c *WallClock) Setting() ClockSetting {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setting
}

// Set makes the clock as wrong as another one.
func (c *WallClock) Set(s ClockSetting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setting = s
}
