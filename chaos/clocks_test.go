package chaos_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// TestHazard136TheClocksOfProcessesOfTheHarnessAreSet: tokens from a process's time of day go back with it.
func TestHazard136TheClocksOfProcessesOfTheHarnessAreSet(t *testing.T) {
	cfg := chaos.Config{
		Backend: "process", Scenario: "clocks-of-processes", TTL: 4 * time.Second, Duration: 8 * time.Second,
	}
	t.Run("tokens from the clock", func(t *testing.T) {
		e, err := controls.FindEntry("token-from-clock")
		must(t, err)
		cfg := cfg
		cfg.Subject = e.Subject()
		catch(t, cfg, func(rep *chaos.Report) bool { return rep.TokenViolations > 0 })
	})
	t.Run("this library", func(t *testing.T) {
		rep := run(t, cfg, acquired(5))
		mustPass(t, rep)
		if rep.Faults["client-clock-step"]+rep.Faults["client-clock-rate"] == 0 {
			t.Error(summary(rep))
		}
	})
}

// TestFaultsMeetAClientWhoseProcessIsGone: two faults of a plan can hit one client.
func TestFaultsMeetAClientWhoseProcessIsGone(t *testing.T) {
	second := plan.Duration(time.Second)
	p := &plan.Plan{
		Scenario: "meeting", Text: "Faults of clients while one has no process.", Workload: "children", Seed: 5,
		Clients: 4, Duration: 4 * second,
		Steps: []plan.Step{
			{At: second, For: 2 * second, Fault: plan.ChildKill},
			{At: 3 * second / 2, For: second / 2, Fault: plan.ClientClock, Step: 60 * second},
			{At: 3 * second / 2, For: second / 2, Fault: plan.ClientPause},
			{At: 9 * second / 4, For: second / 2, Fault: plan.ChildPause},
		},
	}
	mustPass(t, run(t, chaos.Config{Backend: "process", Plan: p}))
}
