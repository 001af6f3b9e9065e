package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// growing has runs of the scenario one after the other, because they look at the heap of this process.
func growing(s workload.Subject) chaos.Config {
	return chaos.Config{
		Subject: s, Scenario: "growth", Backend: "process", Duration: time.Second, Masters: 3, Clients: 2,
		TTL: 2 * time.Second, Limits: quick,
	}
}

func TestCorrectLocksDoNotGrow(t *testing.T) { //nolint:paralleltest // see growing
	for i, s := range []workload.Subject{chaos.Redlock(), controls.Pooling()} {
		if !soak.Share(i, 2) {
			continue
		}
		t.Run(s.Name(), func(t *testing.T) {
			rep := runNow(t, growing(s))
			mustPass(t, rep)
			if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, "after each of 7 rounds") {
				t.Errorf("nothing was counted: %s", notes)
			}
		})
	}
}

func TestALockThatKeepsSomethingOfEachHoldIsConvicted(t *testing.T) { //nolint:paralleltest // see growing
	for i, grows := range [][2]string{{"memory-of-each-hold", "kB of heap"}, {"connection-at-times", "connections"}} {
		if !soak.Share(i, 2) {
			continue
		}
		name, what := grows[0], grows[1]
		t.Run(name, func(t *testing.T) {
			e, err := controls.FindEntry(name)
			must(t, err)
			rep := clean(t, growing(e.Subject()), func(cfg chaos.Config) *chaos.Report {
				return patient.Caught(t, cfg, patient.By(oracle.NameGrowth))
			})
			for _, v := range rep.Violations {
				if v.Oracle != oracle.NameGrowth || !strings.Contains(v.Text, "number of "+what) {
					t.Errorf("also found: %s", v)
				}
			}
		})
	}
}
