package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/internal/toxileak"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	redistest.AtOnce(3) // runs mostly wait
	goleak.VerifyTestMain(m, toxileak.Known()...)
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown flag":       {"-nonsense"},
		"unknown scenario":   {"-scenarios", "calm,nonsense"},
		"no scenario":        {"-scenarios", " , "},
		"clients to kill":    {"-scenarios", "dying-clients"},
		"unknown subject":    {"-subjects", "zookeeper"},
		"argument":           {"calm"},
		"no seed":            {"-seed", "0"},
		"negative seed":      {"-seed", "-1"},
		"no seeds":           {"-seeds", "0"},
		"no time":            {"-duration", "0s"},
		"too short for much": {"-duration", "900ms"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), args, &stdout, &stderr); status != cli.Usage {
				t.Errorf("exit status %d for %q", status, args)
			}
			if stderr.Len() == 0 || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q", stderr.String(), stdout.String())
			}
		})
	}
}

func TestHelpIsNoErrorAndListsScenariosAndSubjects(t *testing.T) {
	var stderr bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &stderr, &stderr); status != cli.OK {
		t.Errorf("exit status %d", status)
	}
	for _, name := range append(scenarioNames(), rivals.Names()...) {
		if !strings.Contains(stderr.String(), name) {
			t.Errorf("the help does not name %s", name)
		}
	}
}

func TestDefaultsAreTheUsualScenariosAndFourSubjects(t *testing.T) {
	c, err := parse(nil, &bytes.Buffer{})
	must(t, err)
	if len(c.scenarios) != len(usual) || len(c.subjects) != 4 || c.seed != 1 || c.seeds != 1 ||
		c.duration != 10*time.Second {
		t.Errorf("defaults: %+v", c)
	}
}

// docs/evidence/comparison.md has the command, with longer runs of more scenarios.
func TestTheCommandComparesOnRealServers(t *testing.T) {
	redistest.Need(t)
	t.Parallel() // a run mostly waits
	path := filepath.Join(t.TempDir(), "out.json")
	var stdout, stderr bytes.Buffer
	args := []string{
		"-seed", "1", "-duration", "3s", "-scenarios", "many-keys", "-subjects", "redlock,naive", "-json", path,
	}
	if status := run(t.Context(), args, &stdout, &stderr); status != cli.OK {
		t.Fatalf("exit status %d\n%s\n%s", status, &stdout, &stderr)
	}
	raw, err := os.ReadFile(path)
	must(t, err)
	var written struct {
		Machine []string
		Results []result
	}
	if err := json.Unmarshal(raw, &written); err != nil || len(written.Results) != 2 || len(written.Machine) == 0 {
		t.Fatalf("%v in\n%s", err, raw)
	}
	own, naive := written.Results[0], written.Results[1]
	if own.Subject != "redlock" || naive.Subject != "naive" || own.Plan != naive.Plan || own.Plan == "" {
		t.Errorf("subjects %s and %s, plans %q and %q", own.Subject, naive.Subject, own.Plan, naive.Plan)
	}
	for _, r := range written.Results {
		if r.Acquisitions < 5 || r.Overlaps != 0 || len(r.Faults) == 0 {
			t.Errorf("%+v", r)
		}
		if !strings.Contains(stdout.String(), r.Subject) {
			t.Errorf("%s is not in the table:\n%s", r.Subject, &stdout)
		}
	}
}

// forgetTTL is the ttl in a run with a forgetful first master, and how long this library then keeps the master from
// voting.
const forgetTTL = 3 * time.Second

// forgetful restarts the first master without its data while a client holds the key. A client holds it most of the
// time: a restart takes long on a busy machine, and must still meet a holder. The restarts begin late, so that a
// restart guard, which distrusts new servers, trusts the masters by then.
func forgetful() *plan.Plan {
	forget := func(at time.Duration) plan.Step {
		return plan.Step{
			At: plan.Duration(at), For: plan.Duration(30 * time.Millisecond), Fault: "kill-empty", Masters: []int{0},
		}
	}
	return &plan.Plan{
		Scenario: "forgetful", Text: "The first master restarts without its data.", Workload: "register", Seed: 3,
		TTL: plan.Duration(forgetTTL), Hold: plan.Duration(2500 * time.Millisecond),
		Duration: plan.Duration(11 * time.Second),
		Steps: []plan.Step{
			forget(3500 * time.Millisecond), forget(5500 * time.Millisecond), forget(7500 * time.Millisecond),
			forget(9500 * time.Millisecond),
		},
	}
}

// TestTheNaiveLockIsCaughtWhenItsMasterForgets is the control of the whole comparison: the harness must see an overlap
// of a lock that has one. Otherwise "no overlaps" would mean nothing.
func TestTheNaiveLockIsCaughtWhenItsMasterForgets(t *testing.T) {
	redistest.Start(t)
	t.Parallel()
	overlaps := func(t *testing.T, s workload.Subject) int {
		t.Helper()
		t.Parallel()
		rep, err := chaos.Run(t.Context(), chaos.Config{
			Subject: s, Backend: "process", Plan: forgetful(), Dir: t.TempDir(),
			Limits: chaos.Limits{Orphan: 500 * time.Millisecond, Tail: 300 * time.Millisecond},
		})
		must(t, err)
		if rep.Acquisitions == 0 || rep.Faults["kill-empty"] != 4 {
			t.Errorf("%s: %d acquisitions, faults %v", s.Name(), rep.Acquisitions, rep.Faults)
		}
		return rep.Overlaps
	}
	t.Run("naive", func(t *testing.T) {
		if n := overlaps(t, rivals.Naive()); n == 0 {
			t.Error("the lock on one master had no overlaps although that master lost its data")
		}
	})
	t.Run("guarded", func(t *testing.T) {
		if n := overlaps(t, chaos.RedlockWith("guarded", redlock.Options{RestartGuard: forgetTTL})); n != 0 {
			t.Errorf("this library, with a restart guard, had %d", n)
		}
	})
}
