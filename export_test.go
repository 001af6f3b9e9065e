package redlock

import "time"

// Verdict is what a tally of votes amounts to.
type Verdict = verdict

// The verdicts.
const (
	Open     = open
	Won      = won
	Denied   = denied
	NoQuorum = noQuorum
)

// Verdicts of an acquisition, an extension and a release with so many votes of each kind among n masters.
var (
	Acquired = judgeBy(tally.acquired)
	Extended = judgeBy(tally.extended)
	Released = judgeBy(tally.released)
)

func judgeBy(judge func(tally) verdict) func(n, granted, refused, unknown int) Verdict {
	return func(n, granted, refused, unknown int) Verdict {
		t := newTally(n)
		for vote, count := range map[Vote]int{Granted: granted, Refused: refused, Unknown: unknown} {
			for range count {
				t.add(vote)
			}
		}
		return judge(t)
	}
}

// The pure functions about time and majorities.
var (
	QuorumOf       = quorumOf
	DriftAllowance = driftAllowance
	ValidUntil     = validUntil
)

// SweepInterval and MaxDebts are the janitor's; DoneLead the renewal's; MaxMasters and MaxKeySize the options'.
const (
	SweepInterval = sweepInterval
	MaxDebts      = maxDebts
	DoneLead      = doneLead
	MaxMasters    = maxMasters
	MaxKeySize    = maxKeySize
)

// SystemClock is the default clock.
func SystemClock() Clock { return systemClock{} }

// RequestTimeout is how long one request for a lock with this ttl may take.
func (o Options) ForTTL(ttl time.Duration) time.Duration { return o.requestTimeout(ttl) }

// Debts is how many releases the janitor still has to see confirmed.
func (l *Locker) Debts() int {
	l.broom.mu.Lock()
	defer l.broom.mu.Unlock()
	return l.broom.count
}

// SplitPause is the longest pause after the n-th round, which took so long and in which contenders shared the votes.
func SplitPause(n int, took time.Duration) time.Duration {
	l := &Locker{opts: Options{Jitter: func(most time.Duration) time.Duration { return most }}}
	l.ear = newEar(l)
	return l.pause(&spec{}, &QuorumError{N: 5, Quorum: 3, Granted: 1, Reason: ErrHeld}, n, took)
}

// Retention is what a Locker knows of counters that masters keep, with methods that tests can call.
type Retention struct{ retention }

// MaxRetained is how many keys are noted together at the most.
const MaxRetained = maxRetained

// Note notes a key.
func (r *Retention) Note(key string, now time.Duration) { r.note(key, now) }

// Has asks for one.
func (r *Retention) Has(key string, now time.Duration) bool { return r.has(key, now) }

// Size is how many keys take memory.
func (r *Retention) Size() int { return len(r.young) + len(r.old) }
