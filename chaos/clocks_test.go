package chaos_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
)

// TestHazard136TheClocksOfProcessesOfTheHarnessAreSet: tokens from a process's time of day go back with it.
func TestHazard136TheClocksOfProcessesOfTheHarnessAreSet(t *testing.T) {
	cfg := chaos.Config{
		Backend: "process", Scenario: "clocks-of-processes", TTL: 4 * time.Second, Duration: 8 * time.Second,
	}
	t.Run("tokens from the clock", func(t *testing.T) {
		e, err := controls.FindEntry("token-from-clock")
		if err != nil {
			t.Fatal(err)
		}
		cfg := cfg
		cfg.Subject = e.Subject()
		caught := func(rep *chaos.Report) bool { return rep.TokenViolations > 0 }
		if rep := catch(t, cfg, caught); !caught(rep) {
			t.Errorf("%s: %v", rep.Verdict, rep.Reasons)
		}
	})
	t.Run("this library", func(t *testing.T) {
		rep := run(t, cfg, acquired(5))
		mustPass(t, rep)
		if rep.Faults["client-clock-step"]+rep.Faults["client-clock-rate"] == 0 {
			t.Error(summary(rep))
		}
	})
}
