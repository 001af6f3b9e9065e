package chaos

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/mutant"
)

// Control is a negative control: a broken lock, with the scenario and the oracle that must catch it.
type Control struct {
	// Subject is the broken lock; its name says how it is broken.
	Subject workload.Subject
	// Mutant names the mutant of the engine that the program has to be built with for Subject; empty: none.
	Mutant string
	// Unbroken is the lock that must pass where the broken one was caught: the same scenario and seed.
	Unbroken workload.Subject
	// Scenario is where it must be caught.
	Scenario string
	// Oracle is the name of the oracle that must find it.
	Oracle string
	// Duration is how long one run lasts.
	Duration time.Duration
}

// Alone reports whether the control's runs must be the only ones in their process: its oracle looks at the heap.
func (c Control) Alone() bool { return c.Oracle == oracle.NameGrowth }

// Controls lists the negative controls: broken variants of a small Redlock, and this library with one rule broken. The
// latter are in builds with a mutant only; elsewhere they can't be opened.
func Controls() []Control {
	const sec = time.Second
	own, guarded := Redlock(), Guarded()
	all := []Control{
		{controls.New(controls.QuorumOfTwo), "", own, "bridge", oracle.NameOverlap, 4 * sec},
		{controls.New(controls.NoDrift), "", own, "drift", oracle.NameOverlap, 15 * sec},
		{controls.New(controls.PlainDelete), "", own, "paused-clients", oracle.NameOverlap, 8 * sec},
		{controls.New(controls.CancelStragglers), "", own, "stragglers", oracle.NameOrphan, 5 * sec},
		{controls.New(controls.Unguarded), "", guarded, "amnesia", oracle.NameOverlap, 26 * sec},
		{controls.New(controls.CountRepairs), "", own, "lapsed-extension", oracle.NameContinuity, 10 * sec},
		{controls.New(controls.MaxIncr), "", own, "wandering-majority", oracle.NameTokenOrder, 8 * sec},
		{controls.New(controls.SingleNX), "", guarded, "amnesia", oracle.NameOverlap, 26 * sec},
		{own, "", guarded, "amnesia", oracle.NameOverlap, 26 * sec},
		{controls.New(controls.NoLock), "", own, "calm", oracle.NameValidity, 3 * sec},
		{controls.New(controls.IdleRelease), "", own, "calm", oracle.NameReleased, 4 * sec},
		{controls.New(controls.Litter), "", own, "calm", oracle.NameKeyspace, 4 * sec},
		{controls.New(controls.Liar), "", own, "many-keys", oracle.NameAvailability, 4 * sec},
		{
			subject.Redlock{Label: "redlock:no-joint-step", Hasty: true},
			"", own, "membership", oracle.NameOverlap, 8 * sec,
		},
		{controls.New(controls.StoppedClock), "", own, "stopped-clients", oracle.NameOverlap, 8 * sec},
	}
	for _, e := range controls.Catalogue() {
		unbroken := controls.New(controls.Textbook)
		if e.Scenario == "growth" {
			unbroken = controls.Pooling()
		}
		all = append(all, Control{e.Subject(), "", unbroken, e.Scenario, e.Oracle, e.For})
	}
	for _, m := range mutant.All() {
		for _, c := range m.Chaos {
			broken, unbroken := subject.Redlock{Label: "redlock:" + m.Name, Mutant: m.Name}, own
			if c.Scenario == "slow-restart" {
				long := longGuarded()
				broken.Options, broken.Aged, unbroken = long.Options, long.Aged, long
			}
			all = append(all, Control{broken, m.Name, unbroken, c.Scenario, c.Oracle, c.For})
		}
	}
	return all
}

// ControlResult says how a control went.
type ControlResult struct {
	Subject  string `json:"subject"`
	Scenario string `json:"scenario"`
	Oracle   string `json:"oracle"`
	Caught   bool   `json:"caught"`
	// Seed is the seed that caught the lock, and Runs the number of runs until then.
	Seed uint64 `json:"seed"`
	Runs int    `json:"runs"`
	// CaughtRuns is how many of the runs caught it; only of [Control.Rate]. StarvedRuns is how many more were made that
	// did not catch it because the machine gave them too little time.
	CaughtRuns  int `json:"caught_runs,omitempty"`
	StarvedRuns int `json:"starved_runs,omitempty"`
	// Starved: it was not caught, or the unbroken lock has no verdict, because the machine gave it too little time.
	Starved bool `json:"starved,omitempty"`
	// TookMS is the time until it was caught, or of [Control.Rate] the time of a run, in milliseconds.
	TookMS int64 `json:"took_ms"`
	// Evidence is the sentence of the first violation.
	Evidence string `json:"evidence,omitempty"`
	// Unbroken is the verdict on the lock that is not broken, in the same scenario with the same seed.
	Unbroken        report.Verdict `json:"unbroken"`
	UnbrokenReasons []string       `json:"unbroken_reasons,omitempty"`
}

// Failed tells whether the control was not caught, or the unbroken library did not pass where it was.
func (c ControlResult) Failed() bool { return !c.Caught || c.Unbroken != report.Pass }

// Catch runs the control with one seed after another, from cfg.Seed on, until it is caught or a minute is over. cfg
// says where (backend, masters, files); what to run is the control's. The result says nothing of the unbroken lock.
func (c Control) Catch(ctx context.Context, cfg Config) (ControlResult, error) {
	result := ControlResult{
		Subject: c.Subject.Name(), Scenario: c.Scenario, Oracle: c.Oracle, Seed: cmp.Or(cfg.Seed, 1),
	}
	cfg = c.configure(cfg, c.Subject)
	start := time.Now()
	for ; ctx.Err() == nil; result.Seed++ {
		cfg.Seed = result.Seed
		rep, err := Run(ctx, cfg)
		if err != nil {
			return result, err
		}
		if result.Evidence = c.evidence(rep); result.Evidence == "" && rep.Starved {
			result.StarvedRuns++
		} else {
			result.Runs++
		}
		if result.Evidence != "" {
			result.Caught, result.TookMS = true, time.Since(start).Milliseconds()
			break
		}
		if time.Since(start)+c.Duration > time.Minute {
			break
		}
	}
	result.Starved = !result.Caught && result.StarvedRuns > result.Runs
	return result, nil
}

// Rate runs the control with that many seeds, from cfg.Seed on, and counts the seeds that catch it: Runs and CaughtRuns
// of the result. A run that the machine gave too little time, and that did not catch it, shows nothing and is replaced,
// as long as there are no more of these than of others. The control counts as caught if nine of ten seeds catch it.
func (c Control) Rate(ctx context.Context, cfg Config, runs int) (ControlResult, error) {
	result := ControlResult{
		Subject: c.Subject.Name(), Scenario: c.Scenario, Oracle: c.Oracle, Seed: cmp.Or(cfg.Seed, 1),
	}
	cfg = c.configure(cfg, c.Subject)
	start := time.Now()
	for cfg.Seed = result.Seed; result.Runs < runs && result.StarvedRuns < runs && ctx.Err() == nil; cfg.Seed++ {
		rep, err := Run(ctx, cfg)
		if err != nil {
			return result, err
		}
		found := c.evidence(rep)
		if found == "" && rep.Starved {
			result.StarvedRuns++
			continue
		}
		result.Runs++
		if found != "" {
			result.CaughtRuns++
			result.Evidence = cmp.Or(result.Evidence, found)
		}
	}
	result.TookMS = time.Since(start).Milliseconds() / int64(max(1, result.Runs+result.StarvedRuns))
	result.Caught = result.Runs == runs && 10*result.CaughtRuns >= 9*runs
	result.Starved = result.Runs < runs && ctx.Err() == nil
	return result, nil
}

func (c Control) configure(cfg Config, subject workload.Subject) Config {
	cfg.Subject, cfg.Scenario, cfg.Duration, cfg.Plan = subject, c.Scenario, c.Duration, nil
	return cfg
}

// Compare runs the unbroken lock with the seed that caught the control, and adds its verdict to the result. This
// library takes its place in scenarios that need more than the unbroken lock has.
func (c Control) Compare(ctx context.Context, cfg Config, result ControlResult) (ControlResult, error) {
	cfg = c.configure(cfg, c.Unbroken)
	cfg.Seed = result.Seed
	rep, err := Run(ctx, cfg)
	if errors.Is(err, workload.ErrUnsupported) {
		cfg.Subject = Redlock()
		rep, err = Run(ctx, cfg)
	}
	if err != nil {
		return result, err
	}
	result.Unbroken, result.UnbrokenReasons, result.Starved = rep.Verdict, rep.Reasons, rep.ShowsNothing()
	// In a scenario that allows overlaps a pass alone does not tell it from the broken one.
	if found := c.evidence(rep); found != "" && rep.Verdict == report.Pass {
		result.Unbroken = report.Violation
		result.UnbrokenReasons = append(result.UnbrokenReasons, found)
	}
	return result, nil
}

// evidence returns the expected oracle's findings. Overlaps count even if the scenario allows them,
// because only the broken lock has any.
func (c Control) evidence(rep *Report) string {
	for _, v := range slices.Concat(rep.Violations, rep.Allowed) {
		// A lock without any time to act shows nothing. The control requires exactly this finding.
		if v.Oracle == c.Oracle && (!v.Unknown || c.Oracle == oracle.NameValidity) {
			return v.Text
		}
	}
	return ""
}
