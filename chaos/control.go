package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/sabotage"
)

// Control is a negative control: a broken lock, and where and by what it must be caught.
type Control struct {
	// Subject is the broken lock; its name says how it is broken.
	Subject workload.Subject
	// Unbroken is the lock that must pass where the broken one was caught: the same scenario and seed.
	Unbroken workload.Subject
	// Scenario is where it must be caught.
	Scenario string
	// Oracle is the name of the oracle that must find it.
	Oracle string
	// Duration is how long one run lasts.
	Duration time.Duration
}

// Controls lists the negative controls: broken variants of a small Redlock, and this library with one rule broken.
func Controls() []Control {
	const sec = time.Second
	own, guarded := Redlock(), Guarded()
	broken := func(name string, s sabotage.Switches) workload.Subject {
		return RedlockWith("redlock:"+name, redlock.Options{Sabotage: s})
	}
	return []Control{
		{controls.New(controls.QuorumOfTwo), own, "calm", oracle.NameOverlap, 3 * sec},
		{controls.New(controls.NoDrift), own, "drift", oracle.NameOverlap, 15 * sec},
		{controls.New(controls.PlainDelete), own, "paused-clients", oracle.NameOverlap, 8 * sec},
		{controls.New(controls.CancelStragglers), own, "stragglers", oracle.NameOrphan, 5 * sec},
		{controls.New(controls.Unguarded), guarded, "amnesia", oracle.NameOverlap, 16 * sec},
		{controls.New(controls.CountRepairs), own, "lapsed-extension", oracle.NameContinuity, 10 * sec},
		{controls.New(controls.MaxIncr), own, "wandering-majority", oracle.NameTokenOrder, 8 * sec},
		{controls.New(controls.SingleNX), guarded, "amnesia", oracle.NameOverlap, 16 * sec},
		{own, guarded, "amnesia", oracle.NameOverlap, 16 * sec},
		{broken("half-quorum", sabotage.Switches{HalfQuorum: true}), own, "calm", oracle.NameOverlap, 3 * sec},
		{broken("no-drift", sabotage.Switches{NoDrift: true}), own, "drift", oracle.NameOverlap, 15 * sec},
		{broken("bound-from-now", sabotage.Switches{BoundFromNow: true}), own, "late-replies", oracle.NameOverlap, 15 * sec},
		{
			broken("drop-stragglers", sabotage.Switches{DropStragglers: true, UnorderedRelease: true}), own, "stragglers",
			oracle.NameOrphan, 5 * sec,
		},
	}
}

// guard is as long as the longest ttl of a scenario in which masters lose their data.
const guard = 4 * time.Second

// Guarded is this library with a restart guard, for masters that lose their data.
func Guarded() workload.Subject {
	return RedlockWith("redlock:guarded", redlock.Options{RestartGuard: guard})
}

// Subjects lists the locks that can be asked for by name: this library first, then the broken ones.
func Subjects() []workload.Subject {
	out := []workload.Subject{Redlock(), Guarded(), controls.New(controls.Textbook)}
	for _, c := range Controls() {
		if !slices.ContainsFunc(out, func(s workload.Subject) bool { return s.Name() == c.Subject.Name() }) {
			out = append(out, c.Subject)
		}
	}
	return out
}

// FindSubject returns the subject of that name.
func FindSubject(name string) (workload.Subject, error) {
	var names []string
	for _, s := range Subjects() {
		if s.Name() == name {
			return s, nil
		}
		names = append(names, s.Name())
	}
	return nil, fmt.Errorf("chaos: no subject %q; there are %v", name, names)
}

// ControlResult says how a control went.
type ControlResult struct {
	Subject  string `json:"subject"`
	Scenario string `json:"scenario"`
	Oracle   string `json:"oracle"`
	Caught   bool   `json:"caught"`
	// Seed is the one that caught it, and Runs how many it took.
	Seed uint64 `json:"seed"`
	Runs int    `json:"runs"`
	// TookMS is the time until it was caught, in milliseconds.
	TookMS int64 `json:"took_ms"`
	// Evidence is the sentence of the first violation.
	Evidence string `json:"evidence,omitempty"`
	// Unbroken is the verdict on the lock that is not broken, in the same scenario with the same seed.
	Unbroken        report.Verdict `json:"unbroken"`
	UnbrokenReasons []string       `json:"unbroken_reasons,omitempty"`
}

// Failed tells whether the control was not caught, or the unbroken library did not pass where it was.
func (c ControlResult) Failed() bool { return !c.Caught || c.Unbroken != report.Pass }

// Run runs the control with one seed after another, from cfg.Seed on, until it is caught or a minute is over, and then this
// library with the seed that caught it. cfg says where (backend, masters, files); what to run is the control's.
func (c Control) Run(ctx context.Context, cfg Config) (ControlResult, error) {
	result := ControlResult{Subject: c.Subject.Name(), Scenario: c.Scenario, Oracle: c.Oracle, Seed: orElse(cfg.Seed, 1)}
	cfg.Subject, cfg.Scenario, cfg.Duration, cfg.Plan = c.Subject, c.Scenario, c.Duration, nil
	start := time.Now()
	for ; ctx.Err() == nil; result.Seed++ {
		cfg.Seed = result.Seed
		result.Runs++
		rep, err := Run(ctx, cfg)
		if err != nil {
			return result, err
		}
		if result.Evidence = c.evidence(rep); result.Evidence != "" {
			result.Caught, result.TookMS = true, time.Since(start).Milliseconds()
			break
		}
		if time.Since(start)+c.Duration > time.Minute {
			return result, nil
		}
	}
	cfg.Subject = c.Unbroken
	rep, err := Run(ctx, cfg)
	if err != nil {
		return result, err
	}
	result.Unbroken, result.UnbrokenReasons = rep.Verdict, rep.Reasons
	// In a scenario that allows overlaps a pass alone does not tell it from the broken one.
	if found := c.evidence(rep); found != "" && rep.Verdict == report.Pass {
		result.Unbroken = report.Violation
		result.UnbrokenReasons = append(result.UnbrokenReasons, found)
	}
	return result, nil
}

// evidence returns what the expected oracle found. Where the scenario allows overlaps, they still tell a lock that has
// them from one that does not.
func (c Control) evidence(rep *Report) string {
	for _, v := range slices.Concat(rep.Violations, rep.Allowed) {
		if v.Oracle == c.Oracle && !v.Unknown {
			return v.Text
		}
	}
	return ""
}
