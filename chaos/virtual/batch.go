package virtual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-624411e5/redlock/chaos/internal/seedrun"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Batch is many schedules of one subject.
type Batch struct {
	Subject workload.Subject
	// Profile is the kind of schedules; the zero value is the first of [Profiles].
	Profile Profile
	// N is how many schedules there are, and First is the seed of the first; the others follow.
	N     int
	First uint64
	// Masters is how many masters each has; 0: drawn.
	Masters int
	// Workers is how many schedules run at the same time. Default: one for each processor.
	Workers int
	// On ends the batch only after all its schedules. Otherwise it ends soon after the first violation.
	On bool
}

// Outcome is the result of a batch.
type Outcome struct {
	Done   int
	Counts Counts
	// Failed are the schedules with a violation, in the order of their seeds. Of a batch that ends at the first one,
	// it has one or few.
	Failed []Failure
}

// Failure is a schedule that broke a promise.
type Failure struct {
	Schedule *Schedule
	Result   *Result
}

// Run runs the batch until ctx is done. It returns an error if a schedule cannot be performed.
func (b *Batch) Run(ctx context.Context) (*Outcome, error) {
	switch {
	case b.Subject == nil:
		return nil, errors.New("virtual: no subject")
	case b.Masters < 0 || b.Masters > mostMasters:
		return nil, fmt.Errorf("virtual: %d masters, and there must be 1 to %d; 0 draws them", b.Masters,
			mostMasters)
	}
	if b.Profile.Name == "" {
		b.Profile = Profiles()[0]
	}
	var (
		mu      sync.Mutex
		out     Outcome
		failure error
	)
	seedrun.Each(ctx, b.Workers, b.First, b.N, func(seed uint64) (goOn bool) {
		s := Generate(seed, b.Profile, b.Masters)
		r, err := Run(b.Subject, s)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = errors.Join(failure, err)
			return false
		}
		out.Done++
		out.Counts.Add(r.Counts)
		if len(r.Violations) == 0 {
			return true
		}
		out.Failed = append(out.Failed, Failure{s, r})
		return b.On
	})
	slices.SortFunc(out.Failed, func(a, b Failure) int { return cmp.Compare(a.Schedule.Seed, b.Schedule.Seed) })
	return &out, failure
}

// String says what happened, in a few words.
func (o *Outcome) String() string {
	c := &o.Counts
	text := fmt.Sprintf("%d locks acquired, %d refused, %d not acquired for other reasons; clients competed in "+
		"%d of %d runs; masters performed %d commands",
		c.Acquired, c.Refused, c.Failed, c.Contended, o.Done, c.Commands)
	var faults []string
	for _, kind := range slices.Sorted(maps.Keys(c.Faults)) {
		faults = append(faults, fmt.Sprintf("%s %d", kind, c.Faults[kind]))
	}
	if len(faults) > 0 {
		text += "; faults: " + strings.Join(faults, ", ")
	}
	return text
}

// Unknown returns reasons why a batch without a violation proves nothing.
func (o *Outcome) Unknown(b *Batch) (reasons []string) {
	c := &o.Counts
	if c.Commands == 0 {
		reasons = append(reasons, "no command reached a master: the lock must dial with the options that it is given")
	}
	if all := c.Acquired + c.Refused + c.Failed; c.Acquired < o.Done || 3*c.Acquired < all {
		reasons = append(reasons,
			fmt.Sprintf("of %d attempts in %d runs only %d acquired a lock", all, o.Done, c.Acquired))
	}
	if 4*c.Contended < o.Done {
		reasons = append(reasons, fmt.Sprintf("clients competed for a key in %d of %d runs only", c.Contended, o.Done))
	}
	if o.Done < 10*len(b.Profile.faults) {
		return reasons // too few to have them all
	}
	for _, kind := range b.Profile.faults {
		if c.Faults[kind] == 0 {
			reasons = append(reasons, fmt.Sprintf("the fault %s never came on", kind))
		}
	}
	return reasons
}

// perOracle says how many schedules each oracle convicts, and the first seed.
func (o *Outcome) perOracle() (lines []string) {
	count, first := make(map[string]int), make(map[string]uint64)
	for _, f := range o.Failed {
		for _, name := range f.Result.Oracles() {
			if count[name]++; count[name] == 1 {
				first[name] = f.Schedule.Seed
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("VIOLATION %s: %d of %d schedules, first seed %d", name, count[name], o.Done,
			first[name]))
	}
	return lines
}
