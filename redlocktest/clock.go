package redlocktest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
)

// worldTime is the time that the clocks of masters and Lockers read, so that all jump in the same moment. Otherwise a
// Locker could renew a lock after its own clock has jumped and before the masters' clocks have. The masters would then
// keep the key for less time than the holder believes.
type worldTime struct {
	began time.Time    // by Go's clock; Wall begins at its wall time
	ahead atomic.Int64 // of Go's clock
}

// isAhead reports whether it began long after the present. That happens if it began outside a bubble and is read
// inside: a bubble's time begins in the year 2000.
func (w *worldTime) isAhead() bool { return w.began.Round(0).Sub(time.Now().Round(0)) > 24*time.Hour }

// clock is a redlock.Clock that follows Go's clock, which is virtual in a bubble. Advance can move it on.
type clock struct {
	world *worldTime

	mu     sync.Mutex
	ahead  time.Duration // of the world's time
	timers map[*timer]struct{}
}

// zero is the first reading of clocks, because to redlock a reading of 0 means "not yet".
const zero = time.Hour

func newClock(world *worldTime) *clock {
	return &clock{world: world, timers: make(map[*timer]struct{})}
}

// Now implements redlock.Clock.
func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *clock) nowLocked() time.Duration {
	return zero + time.Since(c.world.began) + time.Duration(c.world.ahead.Load()) + c.ahead
}

// Wall implements redlock.Clock.
func (c *clock) Wall() time.Time { return c.world.began.Round(0).Add(c.Now() - zero) }

// advance moves this clock on by itself. With 0 it notices a jump of the world's time. Due timers fire.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	now := c.nowLocked()
	for t := range c.timers {
		t.inner.Reset(max(0, t.at-now)) // fires once, also if it was about to
	}
}

// timer is a future call. The clock's mutex guards it.
type timer struct {
	clock   *clock
	call    func()
	at      time.Duration
	setting int         // how often it was set
	inner   *time.Timer // nil while it is not
}

// AfterFunc implements redlock.Clock.
func (c *clock) AfterFunc(d time.Duration, f func()) redlock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{clock: c, call: f}
	t.armLocked(d)
	return t
}

func (t *timer) armLocked(d time.Duration) {
	t.at = t.clock.nowLocked() + d
	t.setting++
	setting := t.setting
	t.inner = time.AfterFunc(d, func() { t.fire(setting) })
	t.clock.timers[t] = struct{}{}
}

// fire makes the call, unless the timer was stopped, was set again or has fired since.
func (t *timer) fire(setting int) {
	t.clock.mu.Lock()
	current := t.inner != nil && t.setting == setting
	if current {
		t.disarmLocked()
	}
	t.clock.mu.Unlock()
	if current {
		t.call()
	}
}

// disarmLocked reports whether the timer was armed.
func (t *timer) disarmLocked() bool {
	if t.inner == nil {
		return false
	}
	t.inner.Stop()
	t.inner = nil
	delete(t.clock.timers, t)
	return true
}

// Stop implements redlock.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.disarmLocked()
}

// Reset implements redlock.Timer.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.disarmLocked()
	t.armLocked(d)
	return was
}
