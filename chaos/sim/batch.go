package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-624411e5/redlock/chaos/internal/seedrun"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// Batch is many schedules, run side by side.
type Batch struct {
	Profile Profile
	// First and N are the seeds: First, First+1, …
	First uint64
	N     int
	// Broken are the mistakes to make.
	Broken BrokenVariants
	// Masters, if not 0, replaces the number of masters of every schedule without an exchange.
	Masters int
	// Oracles names the oracles that judge the runs; nil: all.
	Oracles []string
	// StopAfter is how many failures end the batch; 0: none do.
	StopAfter int
	// Workers run schedules at the same time. Default: one for each processor.
	Workers int
	// Progress, if not nil, is called after each schedule, by one goroutine at a time.
	Progress func(done, failed int)
}

// Failure is one schedule that broke a promise, or could not be run.
type Failure struct {
	Seed       uint64
	Violations []oracle.Violation
	Err        error
}

// Outcome is the result of a batch.
type Outcome struct {
	Done     int
	Steps    int
	Counts   Counts
	Judged   map[string]int // steps, by the specification
	Passed   int            // steps that it does not judge
	Failures []Failure      // by seed
}

// Finding counts the schedules with findings of one oracle.
type Finding struct {
	Schedules int    `json:"schedules"`
	Alone     int    `json:"alone"` // without findings of another
	First     uint64 `json:"first_seed"`
}

// specified returns a sentence with the number of steps that the specification has judged.
func (o *Outcome) specified() string {
	n := 0
	for _, steps := range o.Judged {
		n += steps
	}
	return fmt.Sprintf("the specification allowed %d steps; %d of them it does not judge", n, o.Passed)
}

// Unjudged is the name under which Findings counts the schedules that could not be judged.
const Unjudged = "not judged"

// Findings counts, for each oracle, the schedules in which it has found something.
func (o *Outcome) Findings() map[string]Finding {
	all := make(map[string]Finding)
	for _, f := range o.Failures {
		names := oracle.NamesOf(f.Violations)
		if f.Err != nil {
			names = []string{Unjudged}
		}
		for _, name := range names {
			n := all[name]
			if n.Schedules++; n.Schedules == 1 {
				n.First = f.Seed
			}
			if len(names) == 1 {
				n.Alone++
			}
			all[name] = n
		}
	}
	return all
}

// worst is the failure to show: the first violation, or else the first run that could not be judged.
func (o *Outcome) worst() *Failure {
	for i := range o.Failures {
		if o.Failures[i].Err == nil {
			return &o.Failures[i]
		}
	}
	if len(o.Failures) > 0 {
		return &o.Failures[0]
	}
	return nil
}

// Schedule returns the schedule that the batch runs for a seed.
func (b *Batch) Schedule(seed uint64) *Schedule {
	s := Generate(b.Profile, seed)
	s.Broken = b.Broken
	if b.Masters > 0 && s.Exchange == nil {
		s.setMasters(b.Masters)
	}
	return s
}

// Run runs the batch until all is done, enough has failed, one run has not ended after a minute, or ctx is done.
func (b *Batch) Run(ctx context.Context) *Outcome {
	var out Outcome
	var mu sync.Mutex
	seedrun.Each(ctx, b.Workers, b.First, b.N, func(seed uint64) (goOn bool) {
		r, err := Run(b.Schedule(seed))
		mu.Lock()
		defer mu.Unlock()
		out.add(b, seed, r, err)
		if b.Progress != nil {
			b.Progress(out.Done, len(out.Failures))
		}
		return !errors.Is(err, ErrEndless) && (b.StopAfter <= 0 || len(out.Failures) < b.StopAfter)
	})
	slices.SortFunc(out.Failures, func(x, y Failure) int { return cmp.Compare(x.Seed, y.Seed) })
	return &out
}

// add takes note of one run.
func (o *Outcome) add(b *Batch, seed uint64, r *Result, err error) {
	o.Done++
	if err != nil {
		o.Failures = append(o.Failures, Failure{Seed: seed, Err: err})
		return
	}
	o.Counts.Add(r.Counts)
	if o.Judged == nil {
		o.Judged = make(map[string]int)
	}
	for kind, n := range r.Judged {
		o.Judged[kind] += n
	}
	o.Passed += r.Passed
	o.Steps += r.Steps
	if counted := b.counted(r.Violations); len(counted) > 0 {
		o.Failures = append(o.Failures, Failure{Seed: seed, Violations: counted})
	}
}

// counted are the violations that the batch looks at.
func (b *Batch) counted(all []oracle.Violation) []oracle.Violation {
	if b.Oracles == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(v oracle.Violation) bool {
		return !slices.Contains(b.Oracles, v.Oracle)
	})
}

// setMasters gives the schedule n masters. It also removes the faults of masters that no longer exist.
func (s *Schedule) setMasters(n int) {
	for len(s.Masters) < n {
		s.Masters = append(s.Masters, MasterClock{})
	}
	s.Masters = s.Masters[:n]
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Master >= n })
}
