package redlock

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-624411e5/redlock/internal/sabotage"
)

// The limits within which a request timeout is chosen when Options do not give one.
const (
	minRequestTimeout = 10 * time.Millisecond
	maxRequestTimeout = time.Second
	// timeoutShare of the ttl is the request timeout: a round that needs all of it still leaves 95 % of the ttl.
	timeoutShare = 20
	// renewShare of the ttl after a renewal the next one begins, which leaves time for two more attempts.
	renewShare = 3
	// maxMasters is the most masters one Locker can have. More than nine buy no safety worth their latency.
	maxMasters = 64
)

// Options configure a Locker. The zero value is what most programs want.
type Options struct {
	// RequestTimeout is how long one master may take to answer before its vote counts as unknown.
	// Default: a twentieth of the ttl, at least 10 ms and at most 1 s.
	RequestTimeout time.Duration
	// DriftFactor is how much faster or slower than this machine's a master's clock may run, as a fraction of one.
	// A lock's validity is ttl × DriftFactor + 2 ms shorter than its ttl. Default: 0.01.
	DriftFactor float64
	// Clock tells the time. Default: the machine's, counting suspended time where the system can.
	Clock Clock
	// Jitter returns a random duration of at least 0 and below d; it spreads out retries. Default: math/rand/v2.
	// Another one is for tests that replay. Called from several goroutines.
	Jitter func(d time.Duration) time.Duration
	// RestartGuard keeps a master that restarted, and may have forgotten locks, from voting until it has run for this
	// long; a master that fsyncs every command before it answers, and has not lost its disk, votes at once. Give the
	// longest ttl that anybody uses on these masters; this Locker refuses longer ones. It only works on connections of the
	// library's own ([Dial]). For as long after the very first start of a master it does not vote either. See
	// [single.GuardError].
	// Default: 0, no guard, which is safe only for masters that keep their data.
	RestartGuard time.Duration
	// Observer is told what the Locker does: for logs, metrics and traces. It is called from the goroutines that carry the
	// requests, so it must return quickly and must not call the Locker. Default: nil, which costs nothing.
	Observer func(Event)
	// Sabotage replaces rules of the algorithm by known-bad ones. Its type is internal: it is there for this
	// project's own tests, which have to show that they would notice.
	Sabotage sabotage.Switches
}

// withDefaults checks o and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	if o.RequestTimeout < 0 {
		return o, invalid("Options.RequestTimeout is negative: %v", o.RequestTimeout)
	}
	if o.DriftFactor < 0 || o.DriftFactor >= 1 || math.IsNaN(o.DriftFactor) {
		return o, invalid("Options.DriftFactor is %v, and must be at least 0 and below 1", o.DriftFactor)
	}
	if o.RestartGuard < 0 {
		return o, invalid("Options.RestartGuard is negative: %v", o.RestartGuard)
	}
	if o.DriftFactor == 0 {
		o.DriftFactor = defaultDriftFactor
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration]
	}
	return o, nil
}

// requestTimeout is how long one request for a lock with this ttl may take.
func (o Options) requestTimeout(ttl time.Duration) time.Duration {
	if o.RequestTimeout > 0 {
		return o.RequestTimeout
	}
	return min(max(ttl/timeoutShare, minRequestTimeout), maxRequestTimeout)
}
