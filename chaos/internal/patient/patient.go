// Package patient makes the runs of tests, which need a verdict although the machine may be busy with something else.
package patient

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// most is how many runs a test may make.
const most = 4

// room gives a repeated run the process to itself: if two runs at once were too much for the
// machine, the second attempt does not compete again.
var room sync.RWMutex

// Run makes a run. If the machine gave it so little time that it shows nothing, Run makes another. The first run in
// which too few attempts could be judged doubles the duration of the next ones, since restarts take longer on a busy
// machine too. Run never repeats a run to get another verdict: a pass or a conviction is final. There is one exception:
// a run that passed with little time, but without the events that enough requires, has shown too little. If the machine
// lacks a requirement of the run, Run calls [redistest.NothingTested].
func Run(t *testing.T, cfg chaos.Config, enough ...func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	for n, doubled := 0, false; n < most; n++ {
		rep, err := runOnce(t, cfg, n > 0)
		switch {
		case errors.Is(err, masters.ErrUnavailable):
			redistest.NothingTested(t, err)
		case err != nil:
			t.Fatal(err)
		case !rep.ShowsNothing() && !hurried(rep, enough):
			return rep
		}
		t.Logf("the machine stood still for %.0f ms of %d, so nothing was shown: %s", rep.StalledMS, rep.DurationMS,
			strings.Join(rep.Reasons, "\n"))
		if rep.Unjudged() && !doubled {
			cfg, doubled = twice(cfg), true
		}
	}
	redistest.NothingTested(t, fmt.Sprintf("in each of %d runs the machine gave too little time", most))
	return nil
}

// twice makes a run twice as long. A plan keeps its faults; the added time has none.
func twice(cfg chaos.Config) chaos.Config {
	cfg.Duration *= 2
	if cfg.Plan != nil {
		longer := *cfg.Plan
		longer.Duration *= 2
		cfg.Plan = &longer
	}
	return cfg
}

// By reports whether the oracle of that name convicts the lock of a run. Under a lock whose holds have no validity no
// client may act, so such a run shows nothing more.
func By(name string) func(*chaos.Report) bool {
	want := report.Violation
	if name == oracle.NameValidity {
		want = report.Unknown
	}
	return func(rep *chaos.Report) bool {
		return rep.Verdict == want &&
			slices.ContainsFunc(rep.Violations, func(v oracle.Violation) bool { return v.Oracle == name })
	}
}

// Caught makes runs of a broken lock until an oracle catches one, each with the next seed, and
// returns the last. Chance, and the number of events, decide whether a run of a few seconds meets
// the defect. An oracle that never sees it is blind, which fails the test.
func Caught(t *testing.T, cfg chaos.Config, caught func(*chaos.Report) bool) *chaos.Report {
	t.Helper()
	rep, ok := search(t, cfg, caught, func(cfg chaos.Config) *chaos.Report { return Run(t, cfg) })
	if !ok {
		t.Errorf("not caught in any of %d runs; the last: %s, %d acquisitions, %d overlaps, faults %v, %v\n%s", most,
			rep.Verdict, rep.Acquisitions, rep.Overlaps, rep.Faults, rep.Violations, strings.Join(rep.Reasons, "\n"))
	}
	return rep
}

func search(t *testing.T, cfg chaos.Config, caught func(*chaos.Report) bool,
	run func(chaos.Config) *chaos.Report,
) (rep *chaos.Report, ok bool) {
	t.Helper()
	for n := 1; ; n++ {
		rep = run(cfg)
		if ok = caught(rep); ok || n == most {
			return rep, ok
		}
		t.Logf("seed %d: not caught in %d acquisitions: %s", rep.Seed, rep.Acquisitions, rep.Verdict)
		if cfg.Seed = rep.Seed + 1; cfg.Plan != nil {
			next := *cfg.Plan
			next.Seed, cfg.Plan = cfg.Seed, &next
		}
	}
}

func runOnce(t *testing.T, cfg chaos.Config, alone bool) (*chaos.Report, error) {
	t.Helper()
	if alone {
		room.Lock()
		defer room.Unlock()
	} else {
		room.RLock()
		defer room.RUnlock()
	}
	return chaos.Run(t.Context(), cfg)
}

// hurried reports that a run passed, but with so little time that not enough happened in it.
func hurried(rep *chaos.Report, enough []func(*chaos.Report) bool) bool {
	return rep.Starved && rep.Verdict == report.Pass &&
		slices.ContainsFunc(enough, func(enough func(*chaos.Report) bool) bool { return !enough(rep) })
}
