package load_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, s subject.Subject) subject.Client {
	t.Helper()
	c, err := s.Open(t.Context(), nil)
	must(t, err)
	return c
}

func standard() load.Load {
	return load.Load{
		Workers: 4, Duration: 60 * time.Millisecond, Warmup: 10 * time.Millisecond, Bound: 60 * time.Millisecond,
		TTL: time.Second, Prefix: "key:",
	}
}

func TestClosedLoopCountsCyclesAndTheirTimes(t *testing.T) {
	s, err := standard().Run(t.Context(), open(t, &fake.Subject{Delay: 2 * time.Millisecond}), nil)
	must(t, err)
	if s.Ops < 4 || s.Ops > 4*31 {
		t.Errorf("%d cycles of at least 2ms by 4 workers in 60ms", s.Ops)
	}
	if s.Cycle.Count() != s.Ops || s.Acquire.Count() != s.Ops || s.Release.Count() != s.Ops {
		t.Errorf("recorded %d cycles, %d acquires, %d releases of %d", s.Cycle.Count(), s.Acquire.Count(),
			s.Release.Count(), s.Ops)
	}
	if p50 := s.Cycle.Quantile(0.5); p50 < 2*time.Millisecond {
		t.Errorf("p50 = %v, less than an acquire takes", p50)
	}
	if s.Unfinished != 0 || s.Errors != 0 {
		t.Errorf("%d unfinished, %d errors; want none", s.Unfinished, s.Errors)
	}
	if rate := float64(s.Ops) / 0.06; s.OpsPerSecond > rate {
		t.Errorf("%f cycles/s, more than %f", s.OpsPerSecond, rate)
	}
}

// The subject never answers during the measurement. The run must still end in time, and the latencies must include the
// hanging cycles with their time so far.
func TestALockThatIsStuckIsGivenUpAndReported(t *testing.T) {
	stuck := make(chan struct{})
	l := standard()
	begun := time.Now()
	s, err := l.Run(t.Context(), open(t, &fake.Subject{Stuck: stuck}), func() error {
		close(stuck)
		return nil
	})
	must(t, err)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the run took %v", took)
	}
	if s.Unfinished != int64(l.Workers) || s.Ops != 0 || s.OpsPerSecond != 0 {
		t.Errorf("%d unfinished, %d cycles, %f/s; want %d, 0, 0", s.Unfinished, s.Ops, s.OpsPerSecond, l.Workers)
	}
	if p50, waited := s.Cycle.Quantile(0.5), l.Duration+l.Bound; p50 < waited*3/4 {
		t.Errorf("p50 = %v, want about the %v that were waited", p50, waited)
	}
}

// A worker is free only every 20 ms, but a cycle is due every 2 ms. So the median wait from the due times is far above
// the 20 ms of one cycle.
func TestOpenLoopMeasuresFromTheIntendedStart(t *testing.T) {
	l := standard()
	l.Workers, l.Warmup, l.Rate, l.Duration = 1, 0, 500, 200*time.Millisecond
	s, err := l.Run(t.Context(), open(t, &fake.Subject{Delay: 20 * time.Millisecond}), nil)
	must(t, err)
	if total := s.Ops + s.Unfinished; total < 95 || total > 101 {
		t.Errorf("%d cycles accounted for, want the 100 that were due", total)
	}
	if p50 := s.Cycle.Quantile(0.5); p50 < 60*time.Millisecond {
		t.Errorf("p50 = %v: the queue behind the slow cycles is missing", p50)
	}
}

func TestOpenLoopKeepsItsRate(t *testing.T) {
	l := standard()
	l.Rate, l.Duration, l.Warmup = 200, 250*time.Millisecond, 0
	s, err := l.Run(t.Context(), open(t, &fake.Subject{}), nil)
	must(t, err)
	if total := s.Ops + s.Unfinished; total < 49 || total > 51 {
		t.Errorf("%d cycles in 250ms at 200/s, want 50", total)
	}
}

func TestErrorsAreCountedAndTheCycleGoesOn(t *testing.T) {
	s, err := standard().Run(t.Context(), open(t, &fake.Subject{Flaky: true}), nil)
	must(t, err)
	if s.Errors == 0 || !errors.Is(s.FirstError, fake.ErrFlaky) {
		t.Errorf("%d errors, first %v; want some %v", s.Errors, s.FirstError, fake.ErrFlaky)
	}
	if s.Ops == 0 {
		t.Error("no cycle succeeded in the end")
	}
	if worst := s.Cycle.Max(); worst < time.Millisecond {
		t.Errorf("the slowest cycle took %v: the attempts that failed are not in it", worst)
	}
}

func TestInvalidLoadsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*load.Load){
		"no workers":  func(l *load.Load) { l.Workers = 0 },
		"no duration": func(l *load.Load) { l.Duration = 0 },
		"backwards":   func(l *load.Load) { l.Rate = -1 },
	} {
		l := standard()
		change(&l)
		if _, err := l.Run(t.Context(), open(t, &fake.Subject{}), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCancelEndsTheLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := standard()
	l.Duration = time.Hour
	begun := time.Now()
	if _, err := l.Run(ctx, open(t, &fake.Subject{}), nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a cancelled load took %v", took)
	}
}
