package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// TestHazard131ARunThatShowsNothingIsNoPass has faults that are not available, or do not fit into
// the run, and a lock that refuses every client after some time.
func TestHazard131ARunThatShowsNothingIsNoPass(t *testing.T) {
	t.Parallel()
	for scenario, says := range map[string]string{
		"credentials":  "rights is not available",
		"unplugged":    "disconnect is not available",
		"full":         "full is not available",
		"late-replies": "a longer run may have one",
	} {
		t.Run(scenario, func(t *testing.T) {
			rep := run(t, chaos.Config{Scenario: scenario, Seed: 1, Duration: 1200 * time.Millisecond})
			why := slices.IndexFunc(rep.Reasons, func(s string) bool {
				return strings.HasPrefix(s, "none of the faults came on") && strings.Contains(s, says)
			})
			if rep.Verdict == report.Pass || why < 0 || why > 0 && rep.Verdict == report.Unknown {
				t.Errorf("%s: %q", rep.Verdict, rep.Reasons)
			}
		})
	}
	t.Run("few acquisitions", func(t *testing.T) {
		limits := quick
		limits.Enough = 1_000_000
		rep := run(t, chaos.Config{Scenario: "calm", Seed: 1, Duration: time.Second, Limits: limits})
		if rep.Verdict != report.Unknown || !strings.HasPrefix(rep.Reasons[0], "too little happened") {
			t.Errorf("%s: %q", rep.Verdict, rep.Reasons)
		}
	})
}

// TestAVariantOfALockThatCannotDoItIsComparedWithThisLibrary has a reentrant variant of Textbook, which is not.
func TestAVariantOfALockThatCannotDoItIsComparedWithThisLibrary(t *testing.T) {
	t.Parallel()
	all := chaos.Controls()
	c := all[slices.IndexFunc(all, func(c chaos.Control) bool { return c.Subject.Name() == "nobody-enters-again" })]
	c.Duration = time.Second
	got, err := c.Compare(t.Context(), chaos.Config{Dir: t.TempDir()}, chaos.ControlResult{Seed: 1})
	if err != nil || got.Unbroken == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTheCatalogueIsCaught has some of the broken locks, each in the scenario and by the oracle that it names; the
// command controls runs all.
func TestTheCatalogueIsCaught(t *testing.T) {
	t.Parallel()
	for _, e := range controls.Catalogue() {
		if !e.Sample {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			cfg := chaos.Config{
				Subject: e.Subject(), Scenario: e.Scenario, Seed: 1, Duration: e.For, TTL: 3 * time.Second,
			}
			catch(t, cfg, patient.By(e.Oracle))
		})
	}
}

func TestTheCatalogueIsSound(t *testing.T) {
	all, seen := chaos.Controls(), make(map[string]bool)
	if len(all) < 70 {
		t.Errorf("%d broken locks", len(all))
	}
	for _, c := range all {
		name := c.Subject.Name() + " in " + c.Scenario
		_, err := plan.FindScenario(c.Scenario)
		if err != nil || !slices.Contains(chaos.Oracles(), c.Oracle) || seen[name] {
			t.Errorf("%s, caught by %s: twice %t, %v", name, c.Oracle, seen[name], err)
		}
		seen[name] = true
	}
	for _, e := range controls.Catalogue() {
		if e.Text == "" || e.For == 0 {
			t.Errorf("%s: %q for %v", e.Name, e.Text, e.For)
		}
	}
}
