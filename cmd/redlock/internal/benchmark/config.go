package benchmark

import (
	"fmt"
	"time"
)

// The limits for a run on masters that others use, unless Config.Unlimited is set.
const (
	// MaxOps is the greatest number of operations begun a second. A master gets one command, or a few, of each
	// operation.
	MaxOps = 1000
	// MaxWorkers is the greatest number of workers, and of contenders.
	MaxWorkers = 16
	// MaxTime is the longest time of measurement.
	MaxTime = 2 * time.Minute
	// MaxRounds is the greatest number of rounds, with and without Unlimited.
	MaxRounds = 1000

	// leastWindow is the shortest useful window. leastOps is the least number of operations a second: a contender holds
	// the lock for two of their intervals.
	leastWindow = 10 * time.Millisecond
	leastOps    = 10
	// leastTTL is long enough that a lock outlives every pause except an outage.
	leastTTL = time.Second
)

// Config has the settings of a run. Every field except Pause, Rate, Fenced, Prefix and Unlimited is required.
type Config struct {
	Rounds     int           // how often each part is measured
	Window     time.Duration // for so long each time
	Pause      time.Duration // between two rounds; lets rounds see more variation
	Workers    int           // take separate locks, in the free parts
	Contenders int           // want the same lock, each with a separate Locker
	Rate       float64       // operations that begin a second in an open loop; 0: a closed loop
	Ops        int           // operations that may begin a second; 0 with Unlimited: any number
	TTL        time.Duration // of all locks
	Fenced     bool          // acquisitions ask for a fencing token
	Prefix     string        // the beginning of all keys; a random part follows
	Unlimited  bool          // lifts MaxOps, MaxWorkers and MaxTime
}

// parts are the kinds of window, in the order of the first round.
var parts = []string{"round trips", "free locks", "contended lock", "renewals"}

// Time returns the time of measurement, without the warm-up and pauses.
func (c Config) Time() time.Duration { return time.Duration(c.Rounds*len(parts)) * c.Window }

// cycleOps is the number of operations in a cycle: an acquisition and a release.
const cycleOps = 2

// Check returns an error if c is invalid, in the words of the command's flags.
func (c Config) Check() error {
	switch {
	case c.Rounds < 1 || c.Rounds > MaxRounds:
		return fmt.Errorf("-rounds %d: want 1 to %d", c.Rounds, MaxRounds)
	case c.Window < leastWindow || c.Window > time.Hour:
		return fmt.Errorf("-window %v: want %v to an hour", c.Window, leastWindow)
	case c.Pause < 0 || c.Pause > time.Hour:
		return fmt.Errorf("-pause %v: want 0s to an hour", c.Pause)
	case c.Workers < 1:
		return fmt.Errorf("-workers %d: want at least 1", c.Workers)
	case c.Contenders < 2:
		return fmt.Errorf("-contenders %d: want at least 2, so that one can hand the lock to the other", c.Contenders)
	case c.TTL < leastTTL:
		return fmt.Errorf("-ttl %v: want at least %v", c.TTL, leastTTL)
	case !(c.Rate >= 0 && c.Rate <= 1e6): // NaN is neither
		return fmt.Errorf("-rate %v: want 0 to 1000000", c.Rate)
	case c.Ops < leastOps && (c.Ops != 0 || !c.Unlimited):
		return fmt.Errorf("-ops %d: want at least %d", c.Ops, leastOps)
	case c.Ops > 0 && c.Rate*cycleOps > float64(c.Ops):
		return fmt.Errorf("-rate %v: an acquisition and a release are two operations, and -ops allows %d a second",
			c.Rate, c.Ops)
	}
	return c.checkLimits()
}

// checkLimits protects masters that others use.
func (c Config) checkLimits() error {
	const unless = "; these masters may be in use by others: say -unlimited if not"
	switch {
	case c.Unlimited:
		return nil
	case c.Ops > MaxOps:
		return fmt.Errorf("-ops %d: at most %d%s", c.Ops, MaxOps, unless)
	case c.Workers > MaxWorkers:
		return fmt.Errorf("-workers %d: at most %d%s", c.Workers, MaxWorkers, unless)
	case c.Contenders > MaxWorkers:
		return fmt.Errorf("-contenders %d: at most %d%s", c.Contenders, MaxWorkers, unless)
	case c.Time() > MaxTime:
		return fmt.Errorf("-rounds and -window: %d parts of %d × %v take %v, at most %v%s", len(parts), c.Rounds,
			c.Window, c.Time(), MaxTime, unless)
	}
	return nil
}
