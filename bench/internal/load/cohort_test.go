package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

func cohort(t *testing.T, d time.Duration, goroutines int, clients ...subject.Client) load.Passed {
	t.Helper()
	c := load.Cohort{Goroutines: goroutines, Duration: d, TTL: time.Minute, Key: "one"}
	seen, err := c.Run(t.Context(), clients)
	must(t, err)
	return seen
}

// In virtual time, where no client is started late.
func TestACohortOnACorrectLockHasNoOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fake.Subject{Delay: time.Millisecond}
		seen := cohort(t, time.Second, 4, open(t, s), open(t, s))
		if seen.Overlaps != 0 || seen.Errors != 0 {
			t.Errorf("%d overlaps, %d errors (%v)", seen.Overlaps, seen.Errors, seen.FirstError)
		}
		// A channel serves its waiters in order, so that the key goes round.
		if seen.PerSecond < 100 || seen.MovesPerSecond < 10 || seen.MovesPerSecond > seen.PerSecond {
			t.Errorf("%g handoffs and %g moves a second", seen.PerSecond, seen.MovesPerSecond)
		}
		if seen.Fairness < 0.95 || seen.FairnessWithin < 0.9 { // it is a quarter if one goroutine gets every grant
			t.Errorf("fairness %g, and %g within a client", seen.Fairness, seen.FairnessWithin)
		}
		if grants := seen.PerSecond; float64(seen.Wait.Count()) < grants*0.9 {
			t.Errorf("%d waits of some %g grants", seen.Wait.Count(), grants)
		}
	})
}

// deaf is a client that is never granted anything.
type deaf struct{ subject.Client }

func (deaf) Acquire(ctx context.Context, _ string, _ time.Duration) (subject.Handle, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// If a client starves, every figure about clients must show it, and must differ from that for a client that does not
// take part. The test runs in virtual time. So only the starving client waits, and a client that a busy machine starts
// late does not.
func TestCohortShowsAClientThatStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 300 * time.Millisecond
		s := &fake.Subject{Delay: time.Millisecond} // the time goes on only while all sleep
		seen := cohort(t, d, 2, open(t, s), deaf{open(t, s)})
		if seen.Away.Max() < d*9/10 {
			t.Errorf("the longest time without the key is %v of %v", seen.Away.Max(), d)
		}
		if seen.Wait.Max() < d*9/10 {
			t.Errorf("the longest wait is %v of %v", seen.Wait.Max(), d)
		}
		if seen.Fairness > 0.51 || seen.FairnessWithin > 0.01 {
			t.Errorf("fairness %g although one of two clients got everything, and %g within the client that got "+
				"nothing", seen.Fairness, seen.FairnessWithin)
		}
		if seen.MovesPerSecond != 0 {
			t.Errorf("%g moves between clients a second although one client gets every grant", seen.MovesPerSecond)
		}
	})
}

func TestCohortCountsErrorsAndGoesOn(t *testing.T) {
	seen := cohort(t, 100*time.Millisecond, 2, open(t, &fake.Subject{Flaky: true}))
	if seen.Errors == 0 || seen.FirstError == nil || seen.PerSecond == 0 {
		t.Errorf("%d errors (%v), %g handoffs a second", seen.Errors, seen.FirstError, seen.PerSecond)
	}
}

func TestACohortWithoutGoroutinesIsAnError(t *testing.T) {
	s := &fake.Subject{}
	for name, run := range map[string]struct {
		c       load.Cohort
		clients []subject.Client
	}{
		"no clients":    {load.Cohort{Goroutines: 1, Duration: time.Second}, nil},
		"no goroutines": {load.Cohort{Duration: time.Second}, []subject.Client{open(t, s)}},
		"no time":       {load.Cohort{Goroutines: 1}, []subject.Client{open(t, s)}},
	} {
		if _, err := run.c.Run(t.Context(), run.clients); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
