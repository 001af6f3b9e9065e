package redlock

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/schedule"
)

// Verdict is the result of a tally of votes.
type Verdict = verdict

// The verdicts.
const (
	Undecided = open
	Won       = won
	Denied    = denied
	NoQuorum  = noQuorum
)

// Verdicts of an acquisition, an extension and a release with so many votes of each kind among n masters.
var (
	Acquired = judgeBy(electorates.acquired)
	Extended = judgeBy(electorates.extended)
	Released = judgeBy(electorates.released)
)

func judgeBy(judge func(electorates, *tally) verdict) func(n, granted, refused, unknown int) Verdict {
	return func(n, granted, refused, unknown int) Verdict {
		var t tally
		i := 0
		for vote, count := range map[Vote]int{Granted: granted, Refused: refused, Unknown: unknown} {
			for range count {
				t.Add(i, hold.Vote(vote))
				i++
			}
		}
		return judge(electorates{newElectorate("", 1<<n-1)}, &t)
	}
}

// Verdicts of rounds over two sets of masters, each a bit for each master, by the votes of all masters.
var (
	AcquiredOfBoth = judgeBoth(electorates.acquired)
	ExtendedOfBoth = judgeBoth(electorates.extended)
	ReleasedOfBoth = judgeBoth(electorates.released)
)

func judgeBoth(judge func(electorates, *tally) verdict) func(before, after uint64, votes []Vote) Verdict {
	return func(before, after uint64, votes []Vote) Verdict {
		var t tally
		for i, v := range votes {
			t.Add(i, hold.Vote(v))
		}
		return judge(electorates{newElectorate("old", before), newElectorate("new", after)}, &t)
	}
}

// The pure functions about time and majorities.
var (
	DriftAllowance = driftAllowance
	ValidUntil     = validUntil
	Lapsed         = lapsed
)

// MaxGrace is the longest default grace; MaxMasters and MaxKeySize are the options'.
const (
	MaxGrace   = maxGrace
	MaxMasters = maxMasters
	MaxKeySize = maxKeySize
	// MaxPrefixSize limits Options.Prefix.
	MaxPrefixSize = maxPrefixSize
)

// SystemClock is the default clock.
func SystemClock() Clock { return systemClock{} }

// RequestTimeout returns the timeout of a request for a lock with this ttl.
func (o Options) ForTTL(ttl time.Duration) time.Duration { return o.requestTimeout(ttl) }

// ID is under which name the Locker waits in the masters' queues.
func (l *Locker) ID() string { return l.crowd.ID }

// Pending counts the releases that the janitor has yet to see confirmed.
func (l *Locker) Pending() int { return l.env.Janitor.Pending() }

// MaxEvents bounds the events that wait for an observer.
const MaxEvents = maxEvents

// HoldsMutex names a mutex of the Locker, or of one of its locks, that stays locked, if there is one.
func (l *Locker) HoldsMutex(locks ...*Lock) string {
	takes := map[string]func(){
		"locker":       func() { l.env.Registry.All() },
		"observer":     func() { l.observer.mu.Lock(); defer l.observer.mu.Unlock() },
		"schedule":     func() { l.env.Schedule.Remove(new(schedule.Entry)) },
		"janitor":      func() { l.env.Janitor.Pending() },
		"subscription": func() { l.crowd.Subscription.Subscribed() },
		"retention":    func() { l.env.Retained.Has("key", 0) },
		"queue":        func() { l.crowd.Wake(nil) },
	}
	for _, k := range locks {
		if k != nil {
			takes["lock"] = func() { k.mu.Lock(); defer k.mu.Unlock(); _ = k.hold.Over() }
		}
	}
	for name, take := range takes {
		var taken atomic.Bool
		go func() { take(); taken.Store(true) }()
		for range 1_000_000 {
			if taken.Load() {
				break
			}
			runtime.Gosched() // it is somebody else's, who gives it up
		}
		if !taken.Load() {
			return name
		}
	}
	return ""
}

// OutageSince returns the time when the present outage began, as far as the Locker knows; 0 if there is none.
func OutageSince(l *Locker) time.Duration { return l.crowd.Outage.Since() }

// OpenedByDialJoint is the masters that DialJoint opens, and how it ends.
func OpenedByDialJoint(ctx context.Context, before, after []string) ([]Master, error) {
	d, err := newDialing(ctx, Options{})
	if err == nil {
		_, err = d.joint(before, after)
	}
	return d.opened, err
}
