package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// result is one run of one subject. Its JSON form is stable.
type result struct {
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	Subject  string `json:"subject"`
	// Plan is a hash of the plan. It is the same for all subjects of a scenario and seed.
	Plan string `json:"plan"`
	// Refused is the reason why the subject can't take part; then the fields below are empty.
	Refused string `json:"refused,omitempty"`

	Verdict report.Verdict `json:"verdict,omitempty"`
	// Reasons explain a verdict other than pass.
	Reasons          []string `json:"reasons,omitempty"`
	Acquisitions     int      `json:"acquisitions"`
	Overlaps         int      `json:"overlaps"`
	Orphans          int      `json:"orphans"`
	LostUpdates      int      `json:"lost_updates"`
	UnexpectedErrors int      `json:"unexpected_errors"`
	// OutageMSMax, P50MS and P99MS have the meaning of the chaos harness's report. standstill.go defines
	// StandstillMSMax.
	OutageMSMax     float64        `json:"outage_ms_max"`
	StandstillMSMax float64        `json:"standstill_ms_max"`
	P50MS           float64        `json:"acquire_p50_ms"`
	P99MS           float64        `json:"acquire_p99_ms"`
	Service         oracle.Service `json:"service"`
	// Broken counts, by oracle, violations of the scenario's promises. Allowed counts violations that the scenario does
	// not promise to exclude.
	Broken  map[string]int `json:"broken,omitempty"`
	Allowed map[string]int `json:"allowed,omitempty"`
	// Faults counts each fault. Unavailable has the reason why a fault was not possible.
	Faults      map[string]int    `json:"faults,omitempty"`
	Unavailable map[string]string `json:"unavailable,omitempty"`
	Errors      []string          `json:"errors,omitempty"`
	Notes       []string          `json:"notes,omitempty"`
}

// section holds the results of one scenario.
type section struct {
	scenario plan.Scenario
	subjects []rivals.Rival
	plans    []*plan.Plan // by seed
	results  []result
}

// comparison runs subjects under the same plans.
type comparison struct {
	config

	run  func(context.Context, chaos.Config) (*chaos.Report, error)
	logf func(format string, args ...any)
}

// scenario runs every subject with every seed, one run at a time. It stops at the first run that fails to start or to
// end, and returns the results so far.
func (c *comparison) scenario(ctx context.Context, sc plan.Scenario) (section, error) {
	s := section{scenario: sc, subjects: c.subjects}
	for i := range c.seeds {
		p, err := c.plan(sc, i)
		if err != nil {
			return s, err
		}
		s.plans = append(s.plans, p)
		for _, subject := range c.subjects {
			r, err := c.one(ctx, sc, i, subject)
			if err != nil {
				return s, fmt.Errorf("%s with seed %d, %s: %w", sc.Name, c.seed+uint64(i), subject.Name(), err)
			}
			s.results = append(s.results, r)
		}
	}
	return s, nil
}

// plan draws the plan of a seed. Each run gets a new plan, so no run can change another's.
func (c *comparison) plan(sc plan.Scenario, i int) (*plan.Plan, error) {
	return sc.Draw(c.seed+uint64(i), plan.Size{Duration: c.duration})
}

// one runs one subject, unless the subject lacks a feature that the workload needs.
func (c *comparison) one(ctx context.Context, sc plan.Scenario, i int, s rivals.Rival) (result, error) {
	p, err := c.plan(sc, i)
	if err != nil {
		return result{}, err
	}
	refused := result{Scenario: sc.Name, Seed: p.Seed, Subject: s.Name(), Plan: digest(p)}
	if refused.Refused, err = lacking(p, s); err != nil || refused.Refused != "" {
		return refused, err
	}
	begin := time.Now()
	rep, err := c.run(ctx, chaos.Config{
		Subject: s.Subject, Backend: "process", Plan: p,
		Dir: filepath.Join(c.reports, sc.Name, fmt.Sprint(p.Seed), s.Name()),
	})
	if rep == nil && errors.Is(err, workload.ErrUnsupported) {
		refused.Refused = err.Error()
		return refused, nil
	}
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return result{}, err
	}
	c.logf("%s, seed %d: %s: %s, %d acquisitions, %v", sc.Name, p.Seed, s.Name(), rep.Verdict, rep.Acquisitions,
		time.Since(begin).Round(100*time.Millisecond))
	return summarize(rep), nil
}

// lacking names the feature that the plan's workload needs and the subject does not have; "" if it has all.
func lacking(p *plan.Plan, s rivals.Rival) (string, error) {
	profile, err := p.Profile()
	if err != nil {
		return "", err
	}
	if err := profile.Check(s); err != nil {
		return err.Error(), nil //nolint:nilerr // a subject that can't take part is a result
	}
	return "", nil
}

func summarize(rep *chaos.Report) result {
	return result{
		Scenario: rep.Scenario, Seed: rep.Seed, Subject: rep.Subject, Plan: digest(rep.Plan), Verdict: rep.Verdict,
		Reasons:      rep.Reasons,
		Acquisitions: rep.Acquisitions, Overlaps: rep.Overlaps, Orphans: rep.Orphans, LostUpdates: rep.LostUpdates,
		UnexpectedErrors: rep.UnexpectedErrors, OutageMSMax: rep.OutageMSMax,
		StandstillMSMax: standstill(history.NewView(rep.History)).Seconds() * 1000, P50MS: rep.Latency.P50,
		P99MS:   rep.Latency.P99,
		Service: rep.Service, Broken: byOracle(rep.Violations), Allowed: byOracle(rep.Allowed), Faults: rep.Faults,
		Unavailable: rep.Unavailable, Errors: rep.Errors, Notes: rep.Notes,
	}
}

// byOracle counts violations by oracle. An undecided oracle counts as no violation.
func byOracle(violations []oracle.Violation) map[string]int {
	counts := make(map[string]int)
	for _, v := range violations {
		if !v.Unknown {
			counts[v.Oracle]++
		}
	}
	return counts
}

// digest is a hash of a plan's JSON.
func digest(p *plan.Plan) string {
	raw, err := json.Marshal(p)
	if err != nil {
		return err.Error() // a plan is numbers and names, so there is no error
	}
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash takes everything
	return fmt.Sprintf("%016x", h.Sum64())
}

// merged combines a subject's runs: counts are sums, and times are the worst of all.
func (s section) merged(subject string) (sum result, found bool) {
	sum.Broken, sum.Allowed = make(map[string]int), make(map[string]int)
	for _, r := range s.results {
		if r.Subject != subject {
			continue
		}
		found = true
		sum.Subject, sum.Refused, sum.Reasons = r.Subject, r.Refused, append(sum.Reasons, r.Reasons...)
		sum.Acquisitions += r.Acquisitions
		sum.Overlaps += r.Overlaps
		sum.Orphans += r.Orphans
		sum.LostUpdates += r.LostUpdates
		sum.UnexpectedErrors += r.UnexpectedErrors
		sum.Service.Acquired += r.Service.Acquired
		sum.Service.Failed += r.Service.Failed
		sum.OutageMSMax = max(sum.OutageMSMax, r.OutageMSMax)
		sum.StandstillMSMax = max(sum.StandstillMSMax, r.StandstillMSMax)
		sum.P50MS, sum.P99MS = max(sum.P50MS, r.P50MS), max(sum.P99MS, r.P99MS)
		for name, n := range r.Broken {
			sum.Broken[name] += n
		}
		for name, n := range r.Allowed {
			sum.Allowed[name] += n
		}
	}
	return sum, found
}

// unavailable lists the faults that were not possible here, with the reason.
func (s section) unavailable() []string {
	var out []string
	for _, r := range s.results {
		for name, why := range r.Unavailable {
			if line := name + ": " + why; !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	slices.Sort(out)
	return out
}
