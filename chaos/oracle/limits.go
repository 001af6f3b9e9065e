package oracle

import (
	"cmp"
	"time"
)

// Limits are the numbers of the oracles.
type Limits struct {
	// Done is how late Done may close after the bound, for the scheduler. Default: 150 ms.
	Done time.Duration
	// Orphan is how long a key may outlive its hold once everything is healed. Default: 1.5 s.
	Orphan time.Duration
	// Liveness is how long a free key may go unacquired while a client with a majority asks for it.
	// Default: the ttl plus 3 s.
	Liveness time.Duration
	// Outage is for how long in all, while one kind of fault is on, keys may stay free although a
	// client with a majority wants them. Default: half the ttl and half a second.
	Outage time.Duration
	// Context is for how long an acquisition may go on after the context of its caller has ended. Default: a twentieth
	// of the ttl and a quarter of a second.
	Context time.Duration
	// Pace is how long an acquisition may take, and a release, when nothing is in its way. Default: a quarter of the
	// ttl and half a second.
	Pace time.Duration
	// Operations is the share of releases, and of extensions, that must not fail. A lower share is a violation only if
	// chance does not explain it. Default: 0.5, and 0.8 if no fault came on.
	Operations float64
	// Victim is how long a neighbour may take to acquire a key that no other client wants. Default: half a second.
	Victim time.Duration
	// Reentry is how long the owner of a reentrant lock may wait to enter again. Default: half the ttl.
	Reentry time.Duration
	// Recovery is how long it may take after a majority came back until every key is acquired. Default: the ttl plus 3
	// s.
	Recovery time.Duration
	// Availability is the share of attempts with a majority in reach that must not fail. Default: 1.
	Availability float64
	// Judged is the share of all attempts that has to be judged for it; with less the verdict is unknown. Default: 0.1.
	Judged float64
	// Enough is how many acquisitions a run must have; with fewer the verdict is unknown. Default: half of the holds
	// that fit into the run one after another, 5 at least and 10 at most; for a history alone, 10.
	Enough int
	// Stalled is the largest share of the time that the machine may give the run no processor time;
	// with more the verdict is unknown. Default: 0.5.
	Stalled float64
	// Settle is how long after a majority came back attempts begin to count for it. Default: 1 s.
	Settle time.Duration
	// Goroutines is how long goroutines of the subject may outlive its clients, which have been closed. Default: 1 s.
	Goroutines time.Duration
	// Register is the time for checking each register. Default: 10 s.
	Register time.Duration
	// Tail is how long the workload goes on after the last fault. Default: 1.5 s.
	Tail time.Duration
}

// WithDefaults sets the limits that are 0, for locks with this ttl.
func (l Limits) WithDefaults(ttl time.Duration) Limits {
	l.Done = cmp.Or(l.Done, 150*time.Millisecond)
	l.Orphan = cmp.Or(l.Orphan, 1500*time.Millisecond)
	l.Liveness = cmp.Or(l.Liveness, ttl+3*time.Second)
	l.Outage = cmp.Or(l.Outage, ttl/2+500*time.Millisecond)
	l.Context = cmp.Or(l.Context, ttl/20+250*time.Millisecond)
	l.Pace = cmp.Or(l.Pace, ttl/4+500*time.Millisecond)
	l.Victim = cmp.Or(l.Victim, 500*time.Millisecond)
	l.Reentry = cmp.Or(l.Reentry, ttl/2)
	l.Recovery = cmp.Or(l.Recovery, ttl+3*time.Second)
	l.Availability = cmp.Or(l.Availability, 1)
	l.Judged = cmp.Or(l.Judged, 0.1)
	l.Stalled = cmp.Or(l.Stalled, 0.5)
	l.Settle = cmp.Or(l.Settle, time.Second)
	l.Goroutines = cmp.Or(l.Goroutines, time.Second)
	l.Register = cmp.Or(l.Register, 10*time.Second)
	l.Tail = cmp.Or(l.Tail, 1500*time.Millisecond)
	return l
}
