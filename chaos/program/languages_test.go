package program_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/program"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// TestALockInAnotherLanguagePassesAndIsConvictedWhenItIsBroken runs each example twice: as it is, and with the flag
// that breaks it.
func TestALockInAnotherLanguagePassesAndIsConvictedWhenItIsBroken(t *testing.T) {
	t.Parallel()
	for lock, breaks := range map[string]string{
		"python3 ../examples/python/lock.py": "--quorum 2",
		"node ../examples/node/lock.js":      "--plain-del",
		"bash ../examples/bash/lock.sh":      "--on-error-yes",
	} {
		language, _, _ := strings.Cut(lock, " ")
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(language); err != nil {
				redistest.NothingTested(t, err)
			}
			cfg := chaos.Config{
				Subject: program.Subject(strings.Fields(lock), false), Backend: "process", Scenario: "bridge", Seed: 1,
				Duration: 5 * time.Second, TTL: 10 * time.Second, Dir: t.TempDir(),
				Limits: chaos.Limits{Tail: 300 * time.Millisecond, Orphan: time.Second, Enough: 3}, // bash is slow
			}
			if rep := patient.Run(t, cfg); rep.Verdict != report.Pass || rep.Overlaps > 0 {
				t.Errorf("%s: %v", rep.Verdict, rep.Reasons)
			}
			cfg.Subject = program.Subject(strings.Fields(lock+" "+breaks), false)
			cfg.Duration = 8 * time.Second
			patient.Caught(t, cfg, patient.By(oracle.NameOverlap))
		})
	}
}

// TestHazard136TheClockOfAProgramIsSet: tokens from a program's time of day go back with it.
func TestHazard136TheClockOfAProgramIsSet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		redistest.NothingTested(t, err)
	}
	cfg := chaos.Config{
		Subject: program.Subject([]string{"python3", "../examples/python/lock.py", "--clock-tokens"}, true),
		Backend: "process", Scenario: "wrong-clocks", Seed: 1, Duration: 8 * time.Second, TTL: 10 * time.Second,
		Dir: t.TempDir(), Limits: chaos.Limits{Tail: 300 * time.Millisecond, Orphan: time.Second, Enough: 3},
	}
	patient.Caught(t, cfg, func(rep *chaos.Report) bool {
		return rep.Verdict == report.Violation && rep.TokenViolations > 0
	})
}

func TestAProgramWithoutTheCLibraryHasNoClockToSet(t *testing.T) {
	settable := script(`unset LD_PRELOAD; exec sh -c 'read line; echo "{\"id\":1}"; read line'`).(workload.Settable)
	subject, err := settable.WithClocks(t.Context(), t.TempDir())
	if err != nil {
		redistest.NothingTested(t, err)
	}
	if _, err := subject.Open(t.Context(), []string{"127.0.0.1:1"}); !errors.Is(err, workload.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}
