package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// given are the arguments of a run.
type given struct {
	subject string
	plan    plan.Plan
}

// stub is a comparison that makes no runs: answer returns the report of each.
func stub(t *testing.T, seeds int, answer func(chaos.Config) (*chaos.Report, error)) *comparison {
	t.Helper()
	subjects, err := rivals.Find(nil)
	must(t, err)
	return &comparison{
		config: config{subjects: subjects, seed: 7, seeds: seeds, duration: 10 * time.Second, reports: "unused"},
		run:    func(_ context.Context, cfg chaos.Config) (*chaos.Report, error) { return answer(cfg) },
		logf:   func(string, ...any) {},
	}
}

func scenario(t *testing.T, name string) plan.Scenario {
	t.Helper()
	s, err := plan.FindScenario(name)
	must(t, err)
	return s
}

func TestASeedGivesEverySubjectTheSamePlan(t *testing.T) {
	for _, name := range usual {
		var runs []given
		c := stub(t, 2, func(cfg chaos.Config) (*chaos.Report, error) {
			own := *cfg.Plan
			own.Steps = append([]plan.Step(nil), cfg.Plan.Steps...)
			runs = append(runs, given{cfg.Subject.Name(), own})
			cfg.Plan.Masters = 1 // a run must not change the next run's plan
			for i := range cfg.Plan.Steps {
				cfg.Plan.Steps[i].Fault = "pause"
			}
			return &chaos.Report{Scenario: name, Seed: own.Seed, Subject: cfg.Subject.Name(), Plan: &own}, nil
		})
		s, err := c.scenario(t.Context(), scenario(t, name))
		if err != nil || len(runs) != 2*len(c.subjects) {
			t.Fatalf("%s: %d runs, %v", name, len(runs), err)
		}
		n := len(c.subjects)
		for i, r := range runs {
			first := runs[i/n*n]
			if r.subject != c.subjects[i%n].Name() || !reflect.DeepEqual(r.plan, first.plan) {
				t.Errorf("%s: %s got\n%+v\nand %s\n%+v", name, r.subject, r.plan, first.subject, first.plan)
			}
			if s.results[i].Plan != s.results[i/n*n].Plan {
				t.Errorf("%s: the plans of %s and %s have different hashes", name, r.subject, first.subject)
			}
		}
		// The control: another seed gives another plan.
		if reflect.DeepEqual(runs[0].plan, runs[n].plan) || s.results[0].Plan == s.results[n].Plan {
			t.Errorf("%s: seeds 7 and 8 give one plan", name)
		}
	}
}

func TestASubjectThatLacksWhatAScenarioNeedsIsLeftOut(t *testing.T) {
	var ran []string
	c := stub(t, 1, func(cfg chaos.Config) (*chaos.Report, error) {
		ran = append(ran, cfg.Subject.Name())
		return &chaos.Report{Scenario: "shared", Subject: cfg.Subject.Name(), Plan: cfg.Plan, Acquisitions: 5}, nil
	})
	s, err := c.scenario(t.Context(), scenario(t, "shared"))
	if err != nil || len(ran) != 1 || ran[0] != "redlock" {
		t.Errorf("ran %v, %v; only redlock has shared locks", ran, err)
	}
	var out bytes.Buffer
	must(t, s.write(&out))
	if !strings.Contains(out.String(), "naive has no exclusive locks") {
		t.Errorf("it does not say why naive is left out:\n%s", &out)
	}
}

func TestASubjectThatCannotBeSetUpIsLeftOut(t *testing.T) {
	c := stub(t, 1, func(chaos.Config) (*chaos.Report, error) {
		return nil, fmt.Errorf("chaos: can't set the run up: %w: its clocks can't be set", workload.ErrUnsupported)
	})
	s, err := c.scenario(t.Context(), scenario(t, "wrong-clocks"))
	if err != nil || len(s.results) != len(c.subjects) || !strings.Contains(s.results[0].Refused, "clocks") {
		t.Errorf("%+v, %v", s.results, err)
	}
}

func TestTheComparisonEndsAtTheFirstRunThatFails(t *testing.T) {
	broken := errors.New("no server")
	c := stub(t, 1, func(cfg chaos.Config) (*chaos.Report, error) {
		if cfg.Subject.Name() == "redsync" {
			return nil, broken
		}
		return &chaos.Report{Subject: cfg.Subject.Name(), Plan: cfg.Plan}, nil
	})
	s, err := c.scenario(t.Context(), scenario(t, "calm"))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "calm with seed 7, redsync") || len(s.results) != 1 {
		t.Errorf("%d results, %v", len(s.results), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := c.scenario(ctx, scenario(t, "calm")); !errors.Is(err, broken) {
		t.Errorf("after an interrupt: %v", err)
	}
}

func TestCountsAreAddedUpAndTheWorstTimesShown(t *testing.T) {
	c := stub(t, 2, func(cfg chaos.Config) (*chaos.Report, error) {
		n := int(cfg.Seed + cfg.Plan.Seed - 6) // 1 and 2
		return &chaos.Report{
			Scenario: cfg.Plan.Scenario, Seed: cfg.Plan.Seed, Subject: cfg.Subject.Name(), Plan: cfg.Plan,
			Verdict: report.Violation, Reasons: []string{"see the violations"},
			Acquisitions: 100 * n, Overlaps: n, Orphans: 2 * n, LostUpdates: n, UnexpectedErrors: 10 * n,
			OutageMSMax: float64(100 * n), History: waiting(n),
			Latency:     report.Latency{P50: float64(4 * n), P99: float64(50 * n)},
			Service:     oracle.Service{Acquired: 90, Failed: 10 * (n - 1)},
			Violations:  []oracle.Violation{{Oracle: oracle.NameOverlap}, {Oracle: oracle.NameRegister, Unknown: true}},
			Allowed:     []oracle.Violation{{Oracle: oracle.NameOrphan}},
			Unavailable: map[string]string{"clock-rate": "no compiler"},
			Notes:       []string{"the machine stood still", "fault clock-rate is not available: no compiler"},
		}, nil
	})
	c.subjects = c.subjects[:1]
	s, err := c.scenario(t.Context(), scenario(t, "partitions"))
	must(t, err)
	var out bytes.Buffer
	must(t, s.write(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if note := "  redlock: the machine stood still"; lines[len(lines)-1] != note {
		t.Errorf("the last line is %q, want %q", lines[len(lines)-1], note)
	}
	lines = lines[:len(lines)-1]
	want := "redlock 300 3 6 3 30 200 ms 20 ms 94.74 % 8 ms 100 ms 2 overlap, (2 orphan)"
	if got := strings.Join(strings.Fields(lines[len(lines)-1]), " "); got != want {
		t.Errorf("got  %s\nwant %s\nin\n%s", got, want, &out)
	}
	for _, text := range []string{"lost updates", "seed 7, 8: ", "not done here: clock-rate: no compiler"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, &out)
		}
	}
}

func TestACellNamesViolationsOrTheReasonForAnUnknownVerdict(t *testing.T) {
	for want, r := range map[string]result{
		"nothing":              {},
		"nothing was acquired": {Verdict: report.Unknown, Reasons: []string{"nothing was acquired"}},
		"1 orphan, 2 overlap": {
			Reasons: []string{"long sentence"}, Broken: map[string]int{"overlap": 2, "orphan": 1},
		},
		"(3 overlap)":           {Allowed: map[string]int{"overlap": 3}},
		"1 orphan, (3 overlap)": {Broken: map[string]int{"orphan": 1}, Allowed: map[string]int{"overlap": 3}},
		"stuck, (1 lost update)": {
			Verdict: report.Violation, Reasons: []string{"stuck"}, Allowed: map[string]int{"lost update": 1},
		},
	} {
		if got := found(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFaultsThatReachTheFirstMasterAreRecognised(t *testing.T) {
	s := section{plans: []*plan.Plan{{Steps: []plan.Step{
		{Fault: "pause", Masters: []int{0, 3}},
		{Fault: "pause", Masters: []int{1, 2}},
		{Fault: "latency"},
		{Fault: "ring"},
		{Fault: "client-pause", Clients: []int{0}},
	}}}}
	if got, want := s.reachFirst(), fmt.Sprintf(", which %d of these %d faults can reach", 3, 5); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (section{plans: []*plan.Plan{{}}}).reachFirst(); got != "" {
		t.Errorf("without faults: %q", got)
	}
}

// waiting is a history with one attempt, which fails after n times 10 ms.
func waiting(n int) []history.Event {
	return []history.Event{
		{At: 0, Type: history.AcquireCall, Attempt: 1, Key: "k"},
		{
			At: int64(n) * int64(10*time.Millisecond), Type: history.AcquireReturn, Attempt: 1, Key: "k",
			Outcome: history.NoQuorum,
		},
	}
}
