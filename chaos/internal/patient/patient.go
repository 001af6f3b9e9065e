// Package patient makes the runs of tests, which need a verdict although the machine may be busy with something else.
package patient

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// most is how many runs a test may make in vain.
const most = 4

// Run makes a run, and another one as long as the machine gives it so little time that it shows nothing. A verdict is never
// asked for twice: what passed or was convicted stays so. Where the machine lacks what the run needs there is
// [redistest.NothingTested].
func Run(t *testing.T, cfg chaos.Config) *chaos.Report {
	t.Helper()
	for range most {
		rep, err := chaos.Run(t.Context(), cfg)
		switch {
		case errors.Is(err, masters.ErrUnavailable):
			redistest.NothingTested(t, err)
		case err != nil:
			t.Fatal(err)
		case !starved(rep):
			return rep
		}
		t.Logf("the machine stood still for %.0f ms of %d, so nothing was shown: %s", rep.StalledMS, rep.DurationMS, strings.Join(rep.Reasons, "\n"))
	}
	redistest.NothingTested(t, fmt.Sprintf("in each of %d runs the machine stood still for too long", most))
	return nil
}

// starved reports that a run has no verdict because the machine gave it too little time: it shows nothing, neither good nor bad,
// of a lock that must pass, and no more of one that must be caught.
func starved(rep *chaos.Report) bool {
	unjudged := rep.StalledMS > 0 && 10*rep.Service.Attempts < rep.Service.Total
	found := slices.ContainsFunc(rep.Violations, func(v oracle.Violation) bool { return v.Oracle != oracle.NameAvailability || !v.Unknown })
	return (rep.Starved || unjudged) && rep.Verdict == report.Unknown && !found
}
