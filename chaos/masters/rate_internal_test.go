package masters

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMeasuredRateIsWithinItsStatedError: however late a server answers, a clock that runs at the wanted rate is found
// to, and one that runs true is not.
func TestAMeasuredRateIsWithinItsStatedError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, seed))
			late := func() time.Duration { return time.Duration(r.Int64N(int64(8 * time.Millisecond))) }
			for _, rate := range []float64{0.5, 0.9, 1.5, 2, 4} {
				if got, err := measureRate(t.Context(), rate, serverClock(rate, late)); err != nil {
					t.Errorf("seed %d: %g measured as %g, %v", seed, rate, got, err)
				}
				if got, err := measureRate(t.Context(), rate, serverClock(1, late)); err == nil {
					t.Errorf("seed %d: 1 measured as %g and taken for %g", seed, got, rate)
				}
			}
		}
	})
}

// serverClock is a server's that runs at a rate and answers late.
func serverClock(rate float64, late func() time.Duration) func(context.Context) (reading, error) {
	start := time.Now()
	return func(ctx context.Context) (reading, error) {
		before := time.Now()
		pauseFor(ctx, late())
		at := time.Since(start)
		pauseFor(ctx, late())
		return reading{start.Add(time.Duration(float64(at) * rate)), before, time.Now()}, ctx.Err()
	}
}

func TestARateIsMeasuredOnBusyAndIdleMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		busy := func() time.Duration { return time.Duration(r.Int64N(int64(10 * time.Millisecond))) }
		idle := func() time.Duration { return 50 * time.Microsecond }
		for name, late := range map[string]func() time.Duration{"busy": busy, "idle": idle} {
			for _, rate := range []float64{0.995, 1.005, 1.5} {
				start := time.Now()
				got, err := measureRate(t.Context(), rate, serverClock(rate, late))
				if err != nil || (got-rate)/(rate-1) > 0.5 || (got-rate)/(rate-1) < -0.5 {
					t.Errorf("%s: %g measured as %g, %v", name, rate, got, err)
				}
				if took := time.Since(start); name == "idle" && took > 200*time.Millisecond {
					t.Errorf("%s: %g took %v", name, rate, took)
				}
				// The control: a clock that was not changed.
				if got, err := measureRate(t.Context(), rate, serverClock(1, late)); err == nil ||
					strings.Contains(err.Error(), "%!") {
					t.Errorf("%s: 1 measured as %g and taken for %g, %v", name, got, rate, err)
				}
			}
		}
	})
}

// TestALateFirstAnswerDoesNotSpoilTheMeasurement: a machine that was busy when the fault came on is not for the ten
// seconds after it.
func TestALateFirstAnswerDoesNotSpoilTheMeasurement(t *testing.T) {
	for _, rate := range []float64{0.992, 1.008} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			late := func() time.Duration {
				if time.Since(start) < 200*time.Millisecond {
					return 60 * time.Millisecond
				}
				return time.Millisecond
			}
			if got, err := measureRate(t.Context(), rate, serverClock(rate, late)); err != nil ||
				math.Abs(got-rate) > 0.004 {
				t.Errorf("%g measured as %g, %v", rate, got, err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%g took %v", rate, took)
			}
			if got, err := measureRate(t.Context(), rate, serverClock(1, late)); err == nil {
				t.Errorf("1 measured as %g and taken for %g", got, rate)
			}
		})
	}
}

// TestIdempotentCommandsAreRepeatedUntilTheySucceed, or for as long as there is time.
func TestIdempotentCommandsAreRepeatedUntilTheySucceed(t *testing.T) {
	late := errors.New("late")
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := insist(t.Context(), func(context.Context) error {
			if n++; n < 3 {
				return late
			}
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%d times, %v", n, err)
		}
		start := time.Now()
		if err := insist(t.Context(), func(context.Context) error { return late }); !errors.Is(err, late) ||
			time.Since(start) > insistence+time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestAServerThatDoesNotAnswerHasNoRate(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		if _, err := measureRate(t.Context(), 2, func(context.Context) (reading, error) {
			return reading{}, broken
		}); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		reads, works := 0, serverClock(1.5, func() time.Duration { return time.Millisecond })
		got, err := measureRate(t.Context(), 1.5, func(ctx context.Context) (reading, error) {
			if reads++; reads < 4 {
				return reading{}, broken // connections that an earlier fault has closed
			}
			return works(ctx)
		})
		if err != nil || got < 1.4 || got > 1.6 {
			t.Errorf("measured %g, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		late := func() time.Duration { return 5 * time.Second }
		if _, err := measureRate(t.Context(), 1.001, serverClock(1.001, late)); err == nil ||
			!strings.Contains(err.Error(), "measured only") {
			t.Errorf("error %v", err)
		}
	})
}
