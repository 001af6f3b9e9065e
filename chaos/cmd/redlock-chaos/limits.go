package main

import (
	"flag"

	"github.com/seed-624411e5/redlock/chaos"
)

// limitFlags are the numbers of the oracles.
func limitFlags(f *flag.FlagSet, l *chaos.Limits) {
	f.DurationVar(&l.Done, "limit-done", 0, "how late Done may close after the bound (default 150ms)")
	f.DurationVar(&l.Orphan, "limit-orphan", 0, "how long a key may outlive its hold once all is healed (default 1.5s)")
	f.DurationVar(&l.Liveness, "limit-liveness", 0, "how long a free key that is wanted may stay free (default the "+
		"ttl plus 3s)")
	f.DurationVar(&l.Recovery, "limit-recovery", 0, "how long it may take after a majority came back until all keys "+
		"are acquired (default the ttl plus 3s)")
	f.DurationVar(&l.Outage, "limit-outage", 0, "how long in all wanted keys may stay free while one kind of fault "+
		"is on (default half the ttl plus 500ms)")
	f.DurationVar(&l.Context, "limit-context", 0, "how long an acquisition may go on after its context has ended "+
		"(default a twentieth of the ttl plus 250ms)")
	f.DurationVar(&l.Pace, "limit-pace", 0, "how long an acquisition or a release may take when nothing is in its way "+
		"(default a quarter of the ttl plus 500ms)")
	f.Float64Var(&l.Operations, "limit-operations", 0,
		"the share of releases and of extensions that must work (default 0.5, and 0.8 without faults)")
	f.DurationVar(&l.Victim, "limit-victim", 0, "how long a neighbour may take to acquire a key that nobody else "+
		"wants (default 500ms)")
	f.DurationVar(&l.Reentry, "limit-reentry", 0, "how long the owner of a reentrant lock may wait to enter again "+
		"(default half the ttl)")
	f.DurationVar(&l.Settle, "limit-settle", 0, "how long after a majority came back attempts begin to count for "+
		"availability (default 1s)")
	f.Float64Var(&l.Availability, "limit-availability", 0,
		"the share of judged attempts that must not fail (default 1)")
	f.Float64Var(&l.Judged, "limit-judged", 0, "the share of attempts that must be judged, or the verdict is unknown "+
		"(default 0.1)")
	f.IntVar(&l.Enough, "limit-enough", 0, "how many acquisitions there must be, or the verdict is unknown (default "+
		"5 to 10, by the time that holds take)")
	f.Float64Var(&l.Stalled, "limit-stalled", 0, "for which share of the time the machine may stand still, or the "+
		"verdict is unknown (default 0.5)")
}
