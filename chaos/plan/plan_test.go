package plan_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func draw(t *testing.T, s plan.Scenario, seed uint64, size plan.Size) *plan.Plan {
	t.Helper()
	p, err := s.Draw(seed, size)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", s.Name, seed, err)
	}
	return p
}

func TestTheSameSeedDrawsTheSamePlan(t *testing.T) {
	size := plan.Size{Masters: 5, Clients: 4, Duration: 30 * time.Second}
	for _, s := range plan.Scenarios() {
		differ := 0
		for seed := range uint64(20) {
			a, b := draw(t, s, seed, size), draw(t, s, seed, size)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: seed %d drew two plans", s.Name, seed)
			}
			if !reflect.DeepEqual(a.Steps, draw(t, s, seed+1, size).Steps) {
				differ++
			}
		}
		if s.Name != "calm" && s.Name != "growth" && differ < 15 { // those have no faults
			t.Errorf("%s: of 20 pairs of seeds only %d drew different plans", s.Name, differ)
		}
	}
}

// TestEveryDrawnPlanIsValid covers small and odd sizes; Draw checks each plan with Complete.
func TestEveryDrawnPlanIsValid(t *testing.T) {
	for _, s := range plan.Scenarios() {
		for _, size := range []plan.Size{
			{}, {Masters: 1, Clients: 1}, {Masters: 4, Clients: 2}, {Masters: 7, Duration: time.Minute},
		} {
			for seed := range uint64(30) {
				p := draw(t, s, seed, size)
				if p.Inside != s.Inside || p.Text == "" || !strings.HasSuffix(p.Text, ".") {
					t.Fatalf("%s: %+v", s.Name, p)
				}
				if _, err := p.Profile(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestAScenarioOfSomeLengthHasAllItsFaults: each template comes before any comes again.
func TestAScenarioOfSomeLengthHasAllItsFaults(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range plan.Scenarios() {
		first := draw(t, s, 1, plan.Size{Duration: 5 * time.Minute}).FaultNames()
		slices.Sort(first)
		for seed := range uint64(5) {
			names := draw(t, s, seed, plan.Size{Duration: time.Minute}).FaultNames()
			slices.Sort(names)
			if !slices.Equal(first, names) {
				t.Errorf("%s: a minute of seed %d has %v, five minutes have %v", s.Name, seed, names, first)
			}
		}
		for _, name := range first {
			seen[name] = true
		}
	}
	for _, f := range plan.Faults() {
		if !seen[f.Name] {
			t.Errorf("no scenario has the fault %s", f.Name)
		}
	}
}

func TestInsideScenariosStayInside(t *testing.T) {
	for _, s := range plan.Scenarios() {
		if !s.Inside {
			continue
		}
		for seed := range uint64(20) {
			p := draw(t, s, seed, plan.Size{Duration: time.Minute})
			for _, step := range p.Steps {
				f, err := plan.FindFault(step.Fault)
				if err != nil || f.Outside {
					t.Fatalf("%s: %v, %v", s.Name, step, err)
				}
				if step.Fault == "kill" && !p.AOF {
					t.Errorf("%s kills masters that do not keep their data", s.Name)
				}
				if step.Fault == "clock-rate" && (step.Rate < 0.99 || step.Rate > 1.01) {
					t.Errorf("%s lets a clock run at %g, outside the drift allowance", s.Name, step.Rate)
				}
			}
		}
	}
}

func TestFaultsOnMastersAreActions(t *testing.T) {
	for _, a := range masters.Actions() {
		if f, err := plan.FindFault(string(a)); err != nil || f.Where != plan.OnMaster {
			t.Errorf("action %s: fault %+v, %v", a, f, err)
		}
	}
	if _, err := plan.FindFault("nonsense"); !errors.Is(err, plan.ErrUnknownFault) {
		t.Errorf("error %v", err)
	}
}

const example = `# An outage that we had.
name: our-outage
text: Two masters were slow, then one was cut off.
inside: true
workload: many-keys
ttl: 3s
masters: 3
clients: 4
duration: 12s
steps:
  - at: 6s
    for: 2s
    fault: silence
    masters: [2]
    clients: [0, 3]
    direction: replies
  - at: 1s
    for: 3s
    fault: latency
    delay: 20ms
    jitter: 5ms
`

func TestParseReadsAScenarioFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "outage.yaml")
	must(t, os.WriteFile(name, []byte(example), 0o600))
	p, err := plan.ParseFile(name)
	must(t, err)
	want := []plan.Step{
		{
			At: plan.Duration(time.Second), For: plan.Duration(3 * time.Second), Fault: "latency",
			Delay: plan.Duration(20 * time.Millisecond), Jitter: plan.Duration(5 * time.Millisecond),
		},
		{
			At: plan.Duration(6 * time.Second), For: plan.Duration(2 * time.Second), Fault: "silence",
			Masters: []int{2}, Clients: []int{0, 3}, Direction: "replies",
		},
	}
	if p.Scenario != "our-outage" || !p.Inside || p.Masters != 3 || p.Clients != 4 ||
		!reflect.DeepEqual(p.Steps, want) {
		t.Errorf("parsed %+v", p)
	}
	if profile, err := p.Profile(); err != nil || profile.TTL != 3*time.Second || profile.Name != "many-keys" {
		t.Errorf("profile %+v, %v", profile, err)
	}
}

func TestAPlanSurvivesYAML(t *testing.T) {
	for _, s := range plan.Scenarios() {
		p := draw(t, s, 11, plan.Size{})
		src, err := p.YAML()
		must(t, err)
		back, err := plan.Parse(src)
		if err != nil {
			t.Fatalf("%s: %v\n%s", s.Name, err, src)
		}
		for i := range p.Steps { // an empty list and none mean the same
			if len(p.Steps[i].Masters) == 0 {
				p.Steps[i].Masters, back.Steps[i].Masters = nil, nil
			}
			if len(p.Steps[i].Clients) == 0 {
				p.Steps[i].Clients, back.Steps[i].Clients = nil, nil
			}
		}
		if len(p.Steps) == 0 {
			p.Steps, back.Steps = nil, nil
		}
		if !reflect.DeepEqual(p, back) {
			t.Errorf("%s came back as %+v, was %+v", s.Name, back, p)
		}
	}
}

// mistake is something else in a plan, the line it is in and words of the message.
type mistake struct{ old, new, line, says string }

func refused(t *testing.T, correct string, mistakes map[string]mistake) {
	t.Helper()
	for name, tt := range mistakes {
		t.Run(name, func(t *testing.T) {
			src := strings.Replace(correct, tt.old, tt.new, 1)
			if src == correct {
				t.Fatal("the mistake is not in the file")
			}
			_, err := plan.Parse([]byte(src))
			if err == nil || !strings.Contains(err.Error(), tt.line) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %s and %q", err, tt.line, tt.says)
			}
		})
	}
}

func TestErrorsNameLineAndField(t *testing.T) {
	refused(t, example, map[string]mistake{
		"unknown field":           {"ttl: 3s", "tttl: 3s", "line 6", "tttl"},
		"unknown field in a step": {"    delay: 20ms", "    dely: 20ms", "line 20", "dely"},
		"repeated field":          {"masters: 3\n", "masters: 3\nmasters: 5\n", "line 8", "masters"},
		"not a duration":          {"ttl: 3s", "ttl: three", "line 6", "three"},
		"not a number":            {"masters: 3", "masters: many", "line 7", "many"},
		"unknown fault":           {"fault: silence", "fault: silense", "line 13", "silense"},
		"unknown workload":        {"many-keys", "many-kees", "line 5", "many-kees"},
		"no such master":          {"masters: [2]", "masters: [2, 3]", "line 14", "no master 3"},
		"no such client":          {"clients: [0, 3]", "clients: [0, 4]", "line 15", "no client 4"},
		"direction":               {"direction: replies", "direction: up", "line 16", "requests"},
		"outside":                 {"fault: silence", "fault: flushall", "line 13", "outside"},
		"after the end":           {"for: 2s", "for: 20s", "line 12", "run after 12s"},
		"begins after the end":    {"at: 6s", "at: 60s", "line 11", "within the run"},
		"latency without delay":   {"    delay: 20ms\n", "", "line 17", "delay"},
		"no name":                 {"name: our-outage\n", "", "line", "name"},
		"syntax":                  {"masters: [2]", "masters: [2", "line 1", ""},
	})
}

func TestCompleteRefusesNonsense(t *testing.T) {
	for _, p := range []plan.Plan{
		{Scenario: "x", Masters: -1},
		{Scenario: "x", Clients: 1000},
		{Scenario: "x", Duration: 1},
		{Scenario: "x", Steps: []plan.Step{{Fault: "clock-rate", Rate: 1}}},
		{Scenario: "x", Steps: []plan.Step{{Fault: "clock-step"}}},
		{Scenario: "x", Steps: []plan.Step{{Fault: "bandwidth", Rate: 0.5}}},
		{Scenario: "x", Steps: []plan.Step{{Fault: "flapping", Period: 1}}},
		{Scenario: "x", Steps: []plan.Step{{Fault: "down", At: -1}}},
	} {
		if err := p.Complete(); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}

func TestEveryScenarioHasAWorkload(t *testing.T) {
	for _, s := range plan.Scenarios() {
		if _, err := workload.FindProfile(s.Workload); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, err := plan.FindScenario("nonsense"); err == nil || !strings.Contains(err.Error(), "partitions") {
		t.Errorf("error %v", err)
	}
}
