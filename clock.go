package redlock

import (
	"math"
	"time"

	"github.com/seed-624411e5/redlock/internal/boottime"
)

// Clock tells a Locker the time and wakes it up. The default one counts the time during which the machine is
// suspended and does not jump with the wall clock. Another one is for tests with virtual time; package redlocktest has
// one.
//
// Only readings decide: whatever depends on time asks Now again. A timer that fires late makes nothing unsafe.
type Clock interface {
	// Now returns the time since some fixed moment. It never goes back, also counts while the machine is
	// suspended, and is independent of the wall clock.
	Now() time.Duration
	// Wall returns the time of day. It is only used as a floor for fencing tokens after the masters lost their
	// counters.
	Wall() time.Time
	// AfterFunc calls f in a new goroutine once d has passed, unless the Timer is stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that is going to happen. *time.Timer is one.
type Timer interface {
	// Stop prevents the call; it reports false when the call has begun already, or was stopped before.
	Stop() bool
	// Reset makes the call happen d from now.
	Reset(d time.Duration) bool
}

// systemClock is the machine's own clock; how it reads the time depends on the operating system.
type systemClock struct{}

func (systemClock) Now() time.Duration { return boottime.Now() }

func (systemClock) Wall() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

const (
	// DefaultDriftFactor is how much faster or slower than ours a master's clock may run if [Options] do not say so.
	DefaultDriftFactor = 0.01
	// expiryGranularity is added to every drift allowance. Redis expires keys on milliseconds, so it rounds a ttl at
	// both ends. Redis 8.0 may expire a key as its last millisecond begins.
	expiryGranularity = 2 * time.Millisecond
)

// drift is how much faster or slower than ours a master's clock may run.
type drift float64

// Allowance is the part of a ttl that is lost to clocks of different rates and to the granularity of expiry.
func (d drift) Allowance(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*float64(d)) + expiryGranularity
}

// ValidUntil returns the end of validity: until then, a master that set the key after start keeps it. This is the one
// formula of the algorithm. start is read before the first byte is sent. So whenever the master received the request,
// it keeps the key for longer than we believe.
func (d drift) ValidUntil(start, ttl time.Duration) time.Duration {
	return d.Later(start, ttl-d.Allowance(ttl))
}

// Lapsed returns the time from which a key that a master has set by now, with this ttl, is certainly gone.
func (d drift) Lapsed(now, ttl time.Duration) time.Duration {
	return d.Later(d.Later(now, ttl), d.Allowance(ttl))
}

// Later is t+span, or the end of time where that lies beyond it.
func (drift) Later(t, span time.Duration) time.Duration {
	if span > 0 && t > math.MaxInt64-span {
		return math.MaxInt64
	}
	return t + span
}

// Outlives returns the shortest ttl that keeps a key for so long, whatever the master's clock does.
func (d drift) Outlives(left time.Duration) time.Duration {
	ttl := float64(left+expiryGranularity) / (1 - float64(d))
	return (time.Duration(ttl) + time.Millisecond).Truncate(time.Millisecond)
}
